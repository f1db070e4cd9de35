"""Where something changes between 0.1 and 400 Gb/s: a walk over a grid, and bisection between its points."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

RANGE = (0.1, 400.0)  # Gb/s
GRID = tuple(float(gigabits) for gigabits in np.geomspace(*RANGE, 60))
_PRECISION = 5e-4  # of a change, relative


@dataclass(frozen=True)
class Change:
    """At so many Gb/s the answer changes from what it is below to what it is above."""

    bandwidth: float
    below: Hashable
    above: Hashable


def changes(answer: Callable[[float], Hashable]) -> list[Change]:
    """All changes of an answer with bandwidth, in Gb/s, ascending; two between neighbours of the grid may be missed."""
    out = []
    answers = [answer(gigabits) for gigabits in GRID]
    for (low, before), (high, after) in pairwise(zip(GRID, answers, strict=True)):
        while before != after:
            beyond, then = high, after
            while beyond / low > 1 + _PRECISION:
                middle = math.sqrt(low * beyond)
                found = answer(middle)
                if found == before:
                    low = middle
                else:
                    beyond, then = middle, found
            out.append(Change(math.sqrt(low * beyond), before, then))
            low, before = beyond, then
    return out

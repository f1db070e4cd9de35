"""Timing several cases against each other."""

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(
    cases: Mapping[str, Callable[[], object]],
    repeats: int,
    warm_up: int = 1,
    before: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Seconds of every case in every round: a, b, c, a, b, c, ... so that a busy moment of the machine hits all.

    Args:
        cases: what to time, by name.
        repeats: rounds that count.
        warm_up: rounds before them, for compilation and first allocations.
        before: called before each timing, outside of it.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(warm_up + repeats):
        for name, case in cases.items():
            before()
            began = time.perf_counter()
            case()
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """The middle of each list."""
    return {name: statistics.median(values) for name, values in seconds.items()}

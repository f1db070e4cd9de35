"""Layer times from the totals that papers print."""

import math
from collections.abc import Mapping

from suite.config.costs import LayerCost, LayerCosts


def spread(
    forward: float,
    backward: float,
    select: float,
    work: Mapping[str, float],
    sizes: Mapping[str, int],
    source: str,
    select_whole: float | None = None,
) -> LayerCosts:
    """Totals in seconds, spread over parameter tensors (our split; nobody publishes theirs).

    Backward goes by each tensor's share of the arithmetic, selection by n log2 n of its n elements: the form of the
    authors' own fit of their selection (OMGS-SGD code).

    Args:
        forward, backward, select: seconds of one iteration of one worker.
        work: multiply-accumulates by tensor, in the model's order; see suite.measure.work.
        sizes: elements by tensor.
        source: where the totals come from.
        select_whole: seconds of one selection over the whole gradient, where it is not `select`.
    """
    effort = {name: size * math.log2(size) for name, size in sizes.items()}
    all_work, all_effort = sum(work.values()), sum(effort.values())
    layers = tuple(
        LayerCost(
            name=name, size=size, backward=backward * work[name] / all_work, select=select * effort[name] / all_effort
        )
        for name, size in sizes.items()
    )
    return LayerCosts(forward=forward, layers=layers, select_whole=select_whole, source=source)

"""Which neighbouring layers share a message. Merging saves start-ups and costs waiting; what is sent never changes.

Layers are numbered in back-propagation order. Layer i is ready at a time that does not depend on the messages, so
messages are a partition of the layers into runs, and a run ends at max(end of the run before, ready[its last layer]) +
start + per_byte * its bytes.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from suite.config.costs import Costs, LinearCost
from suite.plan.layout import Layout
from suite.plan.plan import Message, Plan
from suite.plan.predict import SPARSE_ENTRY, Collective, message_bytes, ready_times, usual_collective

# From ready times, bytes of each layer and the collective's line to the number of layers in each message.
Grouping = Callable[[Sequence[float], Sequence[float], LinearCost], list[int]]


def finish(ready: Sequence[float], sizes: Sequence[float], line: LinearCost, groups: Sequence[int]) -> float:
    """When the last message ends: the predicted iteration time.

    Args:
        ready: seconds at which each layer could be sent, ascending.
        sizes: bytes of each layer.
        line: time of one collective.
        groups: layers in each message.
    """
    end, first = 0.0, 0
    for count in groups:
        stop = first + count
        end = max(end, ready[stop - 1]) + line.seconds(sum(sizes[first:stop]))
        first = stop
    return end


def optimal_groups(ready: Sequence[float], sizes: Sequence[float], line: LinearCost) -> list[int]:
    """The shortest iteration over all ways to merge neighbours, and of those the one with the fewest messages.

    Dynamic programming: the earliest end of layers 0..j in m messages is the minimum over the last message's first
    layer i of max(earliest end of 0..i-1 in m-1 messages, ready[j]) + its cost. That is optimal because an earlier end
    of what came before never makes what follows later. Few messages are preferred because each one costs the host
    something that the line does not know. O(n) a number of messages, and numbers grow only until the best is reached.
    """
    total = list(accumulate(sizes, initial=0.0))
    best, _ = _one_more_message(None, ready, total, line)
    # Sums in another order differ in their last bits: what is equal to 1e-9 is equal.
    target = best[-1] * (1 + 1e-9)

    ends, firsts = [0.0] + [math.inf] * len(sizes), []
    while not ends[-1] <= target:
        ends, first = _one_more_message(ends, ready, total, line, len(firsts))
        firsts.append(first)
    groups, stop = [], len(sizes)
    for first in reversed(firsts):
        groups.append(stop - first[stop])
        stop = first[stop]
    return groups[::-1]


def _one_more_message(
    before: list[float] | None, ready: Sequence[float], total: Sequence[float], line: LinearCost, held: int = 0
) -> tuple[list[float], list[int]]:
    """By number of layers: their earliest end, and the first layer of the message that ends it.

    A message of layers i..j-1 starts at max(before[i], ready[j-1]). Among those that start as soon as their last layer
    is ready, the one with the fewest layers ends first; among the others, that with the least before[i] minus the time
    of all bytes before i. With j both only move on, so that each layer is looked at a constant number of times.

    Args:
        before: earliest end of the first i layers, ascending where it is finite; None for what this function returns.
        ready, line: of `optimal_groups`.
        total: bytes of the first i layers.
        held: messages before, so that as many layers are gone; the ends of fewer are infinite.
    """
    ends, firsts = [math.inf] * (held + 1), [held] * (held + 1)
    if before is None:
        ends[0], before = 0.0, ends
    free = held - 1  # the last i for which a message up to j would not wait for the ones before
    busy: deque[tuple[float, int]] = deque()  # later ones that may come to be the best, ascending
    for j in range(held + 1, len(total)):
        at = ready[j - 1]
        own = before[j - 1] - line.per_byte * total[j - 1]
        while busy and busy[-1][0] >= own:
            busy.pop()
        busy.append((own, j - 1))
        while free + 1 < j and before[free + 1] <= at:
            free += 1
        while busy and busy[0][1] <= free:
            busy.popleft()
        end, first = math.inf, j - 1
        if free >= held:
            end, first = at + line.per_byte * (total[j] - total[free]), free
        if busy and busy[0][0] + line.per_byte * total[j] < end:
            end, first = busy[0][0] + line.per_byte * total[j], busy[0][1]
        ends.append(end + line.start)
        firsts.append(first)
    return ends, firsts


def greedy_groups(ready: Sequence[float], sizes: Sequence[float], line: LinearCost) -> list[int]:
    """The rule of MG-WFBP (arXiv 1811.11141, as in its authors' code), for comparison.

    From the loss on, a layer joins the next one when that is ready before the layer's message would have ended, and
    when either the message could not have started earlier or the wait is shorter than the start-up it saves.
    """
    groups, end, held, size = [], 0.0, 0, 0.0
    for i, own in enumerate(sizes):
        held, size = held + 1, size + own
        start = max(end, ready[i])
        last = i + 1 == len(ready)
        # A message that could not have started before `ready[i + 1]` waits less than nothing.
        joins = not last and ready[i + 1] < start + line.seconds(size) and ready[i + 1] - start < line.start
        if not joins:
            groups.append(held)
            end, held, size = start + line.seconds(size), 0, 0.0
    return groups


def merge(
    plan: Plan,
    layout: Layout,
    costs: Costs,
    sparse_entry: float = SPARSE_ENTRY,
    grouping: Grouping = optimal_groups,
    collective: Collective = usual_collective,
) -> Plan:
    """A layer-wise plan's segments in the messages that `grouping` chooses for these costs."""
    sizes = [message_bytes(message, sparse_entry) for message in plan.messages]
    line = collective(costs.network, plan.is_sparse)
    groups = grouping(ready_times(plan, layout, costs), sizes, line)
    stops = list(accumulate(groups))
    segments = plan.segments
    return Plan(tuple(Message(segments[stop - count : stop]) for stop, count in zip(stops, groups, strict=True)))


def compare_on_random(layers: int, instances: int = 300, seed: int = 0) -> dict[str, float]:
    """How far the published rule is from the optimum on random networks and models.

    Backward times and bytes of a layer are log-uniform over two and four decades, a start-up costs between a hundredth
    of and ten mean backward times, and sending everything takes between a tenth of and ten times the backward pass
    (our choice: from all hidden to nothing hidden).

    Returns:
        instances, the share of them in which the rule finds the optimum, and by how much its iteration (without forward
        and selection) is longer: mean and largest relative gap.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(instances):
        backward = 10 ** rng.uniform(-2, 0, layers)
        sizes = 10 ** rng.uniform(0, 4, layers)
        whole = backward.sum()
        start, ratio = whole / layers * 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-1, 1)
        line = LinearCost(start=start, per_byte=ratio * whole / sizes.sum())
        ready = np.cumsum(backward)
        best, greedy = (
            finish(ready, sizes, line, rule(ready, sizes, line)) for rule in (optimal_groups, greedy_groups)
        )
        gaps.append(greedy / best - 1)
    gaps = np.array(gaps)
    return {
        "instances": instances,
        "optimal_share": float((gaps <= 1e-9).mean()),
        "mean_gap": float(gaps.mean()),
        "largest_gap": float(gaps.max()),
    }

"""What a plan costs: bytes of its messages, and the timeline of an iteration under it."""

from bisect import bisect_left
from collections.abc import Callable

from suite.config.costs import Costs, LinearCost, NetworkCosts
from suite.plan.layout import Layout
from suite.plan.plan import Message, Plan
from suite.timeline import Sending, Timeline, predict

# A float32 value with its int32 index, and a float32 value whose place is known.
SPARSE_ENTRY, DENSE_ENTRY = 8, 4


def message_bytes(message: Message, sparse_entry: float = SPARSE_ENTRY) -> float:
    """Bytes one worker hands to the message's collective."""
    return message.entries * (sparse_entry if message.is_sparse else DENSE_ENTRY)


def usual_traffic(workers: int, sparse: bool) -> float:
    """Bytes one of P workers puts on the wire for each byte it hands in: P - 1 in an all-gather, 2(P-1)/P in a ring
    all-reduce."""
    return workers - 1 if sparse else 2 * (workers - 1) / workers


# From a number of workers and whether the plan is sparse to bytes on the wire for each byte handed in.
Traffic = Callable[[int, bool], float]


def wire_bytes(plan: Plan, workers: int, sparse_entry: float = SPARSE_ENTRY, traffic: Traffic = usual_traffic) -> float:
    """Bytes one of P workers puts on the wire an iteration."""
    handed_in = sum(message_bytes(message, sparse_entry) for message in plan.messages)
    return handed_in * traffic(workers, plan.is_sparse)


def usual_collective(network: NetworkCosts, sparse: bool) -> LinearCost:
    """What a message costs where a method does not say otherwise: sparse payloads are gathered, dense ones reduced."""
    return network.all_gather if sparse else network.all_reduce


# From a network and whether the plan is sparse to seconds over the bytes that one worker hands in for a message.
Collective = Callable[[NetworkCosts, bool], LinearCost]


def ready_times(plan: Plan, layout: Layout, costs: Costs) -> list[float]:
    """For each layer, last one first: seconds from the iteration's start until it could be sent.

    Layers are selected in between (see suite.timeline.predict), so this does not depend on how they are merged.
    """
    costs.layers.check(layout.names)
    selects, now, out = plan.is_sparse, costs.layers.forward, []
    for layer in reversed(costs.layers.layers):
        now += layer.backward + (layer.select if selects else 0.0)
        out.append(now)
    return out


def predict_plan(
    plan: Plan,
    layout: Layout,
    costs: Costs,
    sparse_entry: float = SPARSE_ENTRY,
    collective: Collective = usual_collective,
) -> Timeline:
    """The predicted iteration of a worker on a device of its own.

    Args:
        plan: messages that each carry whole parameter tensors.
        layout: of the gradient; `costs` must be of the same layers.
        costs: of layers and network.
        sparse_entry: bytes on the wire of one selected entry, value and index.
        collective: what a message costs; see `suite.methods.Method.collective`.
    """
    costs.layers.check(layout.names)
    line = collective(costs.network, plan.is_sparse)
    select_whole = costs.layers.select_whole if len(plan.segments) == 1 else None
    sendings = [
        Sending(
            label=message.name,
            layers=bisect_left(layout.bounds, message.stop) - bisect_left(layout.bounds, message.start),
            exchange=line.seconds(message_bytes(message, sparse_entry)),
            selects=message.is_sparse,
            select=select_whole,
        )
        for message in plan.messages
    ]
    return predict(costs.layers, sendings)

"""What a plan costs: bytes of its messages, and the timeline of an iteration under it."""

from suite.config.costs import Costs, LinearCost, NetworkCosts
from suite.plan.layout import Layout
from suite.plan.plan import Message, Plan
from suite.timeline import Sending, Timeline, predict

# A float32 value with its int32 index, and a float32 value whose place is known.
SPARSE_ENTRY, DENSE_ENTRY = 8, 4


def message_bytes(message: Message, sparse_entry: float = SPARSE_ENTRY) -> float:
    """Bytes one worker hands to the message's collective."""
    return message.entries * (sparse_entry if message.is_sparse else DENSE_ENTRY)


def collective(plan: Plan, network: NetworkCosts) -> LinearCost:
    """The collective a plan uses: sparse payloads are gathered, dense ones reduced."""
    return network.all_gather if plan.is_sparse else network.all_reduce


def ready_times(plan: Plan, layout: Layout, costs: Costs) -> list[float]:
    """For each layer, last one first: seconds from the iteration's start until it could be sent.

    Layers are selected in between (see suite.timeline.predict), so this does not depend on how they are merged.
    """
    costs.layers.check(layout.names)
    now, out = costs.layers.forward, []
    for layer in reversed(costs.layers.layers):
        now += layer.backward + (layer.select if plan.is_sparse else 0.0)
        out.append(now)
    return out


def predict_plan(plan: Plan, layout: Layout, costs: Costs, sparse_entry: float = SPARSE_ENTRY) -> Timeline:
    """The predicted iteration of a worker on a device of its own.

    Args:
        plan: messages that each carry whole parameter tensors.
        layout: of the gradient; `costs` must be of the same layers.
        costs: of layers and network.
        sparse_entry: bytes on the wire of one selected entry, value and index.
    """
    costs.layers.check(layout.names)
    line = collective(plan, costs.network)
    sendings = [
        Sending(
            label=message.name,
            layers=sum(message.start <= offset < message.stop for offset in layout.offsets),
            exchange=line.seconds(message_bytes(message, sparse_entry)),
            selects=message.is_sparse,
            select=costs.layers.select_whole if len(plan.segments) == 1 else None,
        )
        for message in plan.messages
    ]
    return predict(costs.layers, sendings)

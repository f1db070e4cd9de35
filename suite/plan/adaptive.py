"""The adaptive compression ratio: each layer sends as much as back-propagation can hide.

For layer l (l = L next to the loss) the paper asks for c(l) = min(c_u, min{c >= 1 : t_select(l) + t_exchange(l, c) <=
budget(l)}): the least compression whose message still hides, and c_u where none does. It keeps k(l) = d(l) / c(l). The
rules here solve for k directly, as t_exchange is a line in k.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from suite.config.costs import Costs
from suite.plan.layout import Layout
from suite.plan.plan import Message, Plan, Segment
from suite.plan.predict import SPARSE_ENTRY, Collective, ready_times, usual_collective

Rule = Literal["later", "next"]


def adapt(
    least: Plan,
    layout: Layout,
    costs: Costs,
    rule: Rule,
    sparse_entry: float = SPARSE_ENTRY,
    collective: Collective = usual_collective,
) -> Plan:
    """The plan `least`, which sends every layer at c_u in a message of its own, with k raised as far as `rule` allows.

    Rule `next` is the paper's formula as it is written: selection and exchange of a layer must fit into the backward
    time of the next layer to be back-propagated. Every layer is judged alone.

    Rule `later` (our reading of "all later layers") follows the timeline: a message may last until it would delay a
    later one, where later ones send at c_u and the last possible end is that of back-propagation. It starts when the
    layer is selected and the messages before it, at the k they were given, have ended. So `later` uses all time the
    layers after it have to offer, and its predicted iteration is as short as that of c_u for every layer: never longer
    than `next` predicts (tested). That makes it the default.

    Under both the first layer of the model has nothing left to hide behind and sends at c_u, and a faster network
    never gives a layer a smaller k. Ratios are chosen for a message a layer: merging afterwards does not change them.

    Raises:
        ValueError: `least` has messages of several layers.
    """
    if any(len(message.segments) > 1 for message in least.messages):
        raise ValueError("ratios are adapted layer by layer; merge the messages afterwards")
    line, ready = collective(costs.network, True), ready_times(least, layout, costs)
    per_entry = line.per_byte * sparse_entry
    *hiding, first_layer = least.segments  # in back-propagation order

    if rule == "next":
        layers = costs.layers.layers[::-1]
        rooms = [after.backward - layer.select for layer, after in pairwise(layers)]
        entries = [_fitting(s, room - line.start, per_entry) for s, room in zip(hiding, rooms, strict=True)]
    else:
        # The latest end of each message that delays no later one, from the last that can hide to the first.
        latest, last = [], ready[-1]
        for segment, at in zip(reversed(hiding), reversed(ready[:-1]), strict=True):
            latest.append(last)
            last = max(last - line.start - per_entry * segment.k, at)
        entries, end = [], 0.0
        for segment, at, last in zip(hiding, ready, reversed(latest), strict=False):
            begin = max(at, end)
            entries.append(_fitting(segment, last - begin - line.start, per_entry))
            end = begin + line.start + per_entry * entries[-1]
    raised = [replace(segment, k=k) for segment, k in zip(hiding, entries, strict=True)]
    return Plan(tuple(Message((segment,)) for segment in (*raised, first_layer)))


def _fitting(segment: Segment, room: float, per_entry: float) -> int:
    """Entries of the segment that can be sent in `room` seconds, between its k and its size.

    The quotient is nudged up by one part in 1e12, so that a layer that fits exactly is not cut by rounding.
    """
    if room < 0:
        return segment.k
    if room >= per_entry * segment.size:
        return segment.size
    return max(segment.k, math.floor(room / per_entry * (1 + 1e-12)))

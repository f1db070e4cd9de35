"""What is sent when: a plan is a list of messages in back-propagation order, a message one or more segments.

Dense, SLGS and LAGS are one algorithm under three plans. From measured costs `adapt` chooses each layer's k, `merge`
its message, and `predict_plan` the timeline of an iteration. No torch in this room.
"""

from suite.plan.adaptive import adapt
from suite.plan.layout import Layout
from suite.plan.merge import compare_on_random, greedy_groups, merge, optimal_groups
from suite.plan.plan import Message, Plan, Segment, entries_kept, layer_wise, low_rank, whole_gradient
from suite.plan.predict import message_bytes, predict_plan, usual_collective, usual_traffic, wire_bytes

__all__ = [
    "Layout",
    "Message",
    "Plan",
    "Segment",
    "adapt",
    "compare_on_random",
    "entries_kept",
    "greedy_groups",
    "layer_wise",
    "low_rank",
    "merge",
    "message_bytes",
    "optimal_groups",
    "predict_plan",
    "usual_collective",
    "usual_traffic",
    "whole_gradient",
    "wire_bytes",
]

"""What is sent when: a plan is a list of messages in back-propagation order, a message one or more segments.

Dense, SLGS and LAGS are one algorithm under three plans. No torch in this room.
"""

from suite.plan.layout import Layout
from suite.plan.plan import Message, Plan, Segment, entries_kept, layer_wise, whole_gradient

__all__ = ["Layout", "Message", "Plan", "Segment", "entries_kept", "layer_wise", "whole_gradient"]

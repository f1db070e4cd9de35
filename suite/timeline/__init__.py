"""One iteration as intervals on two lanes, computation and network: predicted from costs, or traced in a run.

`predict` lays out an iteration from layer times and what each message costs. No torch in this room.
"""

from suite.timeline.predict import Sending, predict
from suite.timeline.timeline import Event, Timeline, common_hidden_share

__all__ = ["Event", "Sending", "Timeline", "common_hidden_share", "predict"]

"""P logical workers on N processes: placement, transports, and starting the processes.

The worker, not the process, owns everything random or stateful, so a run's bits do not depend on the placement.
"""

from suite.world.worker import Worker
from suite.world.world import World, open_world

__all__ = ["Worker", "World", "open_world"]

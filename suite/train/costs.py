"""Costs measured in a run's own first iterations, from which its messages are merged."""

import time
from statistics import median

import numpy as np

from suite.config.costs import Costs, LayerCost, LayerCosts, NetworkCosts
from suite.measure.network import glance_at_network
from suite.plan import Layout
from suite.world import World

ITERATIONS = 3  # the median over three forgives the first, which pays for allocation and lazy set-up
_SIZES = (2**10, 2**14, 2**17, 2**20)  # bytes
_REPEATS = 5


class CostMeter:
    """Watches the iterations of a process: how long until back-propagation begins, and then from gradient to gradient.

    On a process of several workers the last one's back-propagation is what messages can hide behind; all that comes
    before it counts as forward.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        self._forward: list[float] = []
        self._ready: list[np.ndarray] = []
        self._select: list[np.ndarray] = []
        self._ended = 0

    def iteration_begins(self) -> None:
        """Start an iteration."""
        self._began, self._in_backward = time.monotonic(), False

    def backward_begins(self, moment: float) -> None:
        """The last local worker's back-propagation starts; where nobody tells, its first gradient does."""
        self._in_backward = True
        self._moment = moment
        self._forward.append(self._moment - self._began)
        self._ready.append(np.zeros(len(self.layout.names)))
        self._select.append(np.zeros(len(self.layout.names)))
        self._computed = 0.0

    def gradient(self, number: int, appeared: float, left: float) -> None:
        """A parameter's gradient appeared and was dealt with, accumulated and selected, between two moments."""
        if not self._in_backward:
            self.backward_begins(appeared)
        self._computed += appeared - self._moment
        self._ready[-1][number] = self._computed
        self._select[-1][number] = left - appeared
        self._moment = left

    def iteration_ends(self) -> bool:
        """Another iteration is over; whether that is enough. The same on all processes, whatever each has seen."""
        self._ended += 1
        return self._ended % ITERATIONS == 0

    def costs(self, world: World) -> Costs | None:
        """What was seen, as the median over processes, and a fit of the world's collectives. Entered by all together.

        None if no process has seen a back-propagation: then it takes more iterations.

        A layer's backward is how much later it and all behind it are ready than all behind it, as in
        `suite.measure.layers`.
        """
        own = None
        if self._forward:
            own = (median(self._forward), np.median(self._ready, axis=0), np.median(self._select, axis=0))
        everyone = [seen for seen in world.transport.gather_objects(own) if seen is not None]
        if not everyone:
            return None
        forward, ready, select = (np.median([part[i] for part in everyone], axis=0) for i in range(3))
        latest = np.maximum.accumulate(ready[::-1])[::-1]
        backward = latest - np.append(latest[1:], 0.0)
        rows = zip(self.layout.names, backward, select, strict=True)
        layers = tuple(LayerCost(name=name, backward=float(b), select=float(s)) for name, b, s in rows)
        counted = world.bytes_sent
        lines = {name: line.cost for name, line in glance_at_network(world, _SIZES, _REPEATS).items()}
        world.bytes_sent = counted  # measuring sends no gradients
        source = f"measured in the run's first {ITERATIONS} iterations"
        return Costs(
            layers=LayerCosts(forward=float(forward), layers=layers, source=source),
            network=NetworkCosts(workers=world.size, source=source, **lines),
        )

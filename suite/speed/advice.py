"""Would sparsification make this training faster? The methods ranked on a network, and where the answer changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import Any

from suite.config.costs import NetworkCosts
from suite.errors import ConfigError
from suite.speed.paper import PLANS
from suite.speed.predictions import LAGS_ADAPTIVE, Prediction, predictions
from suite.speed.subject import Subject
from suite.speed.sweep import GRID, RANGE, Change, changes

# Within this share methods count as equally fast, and the simpler is advised (our choice: times are not that exact).
MARGIN = 0.01
_LABELS = {"dense": "dense", "slgs": "SLGS", "lags": "LAGS"}  # from the simplest on


@dataclass(frozen=True)
class Advice:
    """What is best for a subject on a network.

    Attributes:
        subject: with its layer times.
        network: its collectives among P workers.
        ranked: an iteration of each method, fastest first.
        changes: of the best method over bandwidth, start-ups as on this network; None where bytes cost nothing.
        curves: seconds an iteration by plan, one for each bandwidth of `suite.speed.sweep.GRID`; empty likewise.
    """

    subject: Subject
    network: NetworkCosts
    ranked: tuple[Prediction, ...]
    changes: tuple[Change, ...] | None
    curves: dict[str, list[float]]

    @property
    def gigabits(self) -> float:
        """Bandwidth of the network's links, in Gb/s."""
        return self.network.bandwidth / 1e9

    @cached_property
    def best(self) -> str:
        """Name of the method that is advised."""
        return _best(self.ranked)

    def speed_up(self, found: Prediction) -> float:
        """How many times as fast as dense with merged messages."""
        return self._of("dense") / found.timeline.iteration

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.best == "dense":
            fastest = min(("slgs", "lags"), key=self._of)
            longer = self._of(fastest) / self._of("dense")
            if longer < 1 + MARGIN:
                text = f"dense is best here: sparsification gains less than {MARGIN:.0%}"
            else:
                text = f"dense is best here: {_LABELS[fastest]} would take {longer:.2f} times as long"
        else:
            text = f"{_LABELS[self.best]} is {self._of('dense') / self._of(self.best):.2f} times as fast as dense here"
        return f"{text}; {self._elsewhere()}"

    def rows(self) -> list[dict[str, Any]]:
        """A row a method: seconds, bytes that a worker puts on the wire, speed-up over dense."""
        kept = ("method", "plan", "density", "messages", "select_s", "exchange_s", "exposed_s", "iteration_s")
        return [
            {key: value for key, value in one.row().items() if key in kept}
            | {"sent_bytes": one.sent_bytes, "speed_up": self.speed_up(one)}
            for one in self.ranked
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values; None where bandwidth says nothing."""
        known = self.changes is not None
        return {
            "subject": self.subject.name,
            "layers": self.subject.layers.source,
            "workers": self.network.workers,
            "network": self.network.model_dump(),
            "bandwidth": self.gigabits if known else None,
            "best": self.best,
            "answer": self.sentence,
            "methods": self.rows(),
            "changes": [vars(change) for change in self.changes] if known else None,
        }

    def _of(self, method: str) -> float:
        return next(one.timeline.iteration for one in self.ranked if one.title == PLANS[method])

    def _elsewhere(self) -> str:
        """What holds on faster and slower networks."""
        if self.changes is None:
            return "bytes cost nothing on this network, so other bandwidths cannot be told"
        above = next((change for change in self.changes if change.bandwidth > self.gigabits), None)
        below = next((change for change in reversed(self.changes) if change.bandwidth <= self.gigabits), None)
        parts = []
        if above:
            parts.append(f"{_gets_faster(above.above)} above {above.bandwidth:.3g} Gb/s")
        if below:
            parts.append(f"{_gets_faster(below.below)} below {below.bandwidth:.3g} Gb/s")
        return ", and ".join(parts) or "that holds from {:g} to {:g} Gb/s".format(*RANGE)


def advise(subject: Subject, network: NetworkCosts) -> Advice:
    """Rank the methods for a subject on a network, and look where on other bandwidths another one is best.

    Raises:
        ConfigError: there are fewer than two workers, so nothing is exchanged.
    """
    if network.workers < 2:
        raise ConfigError("one worker exchanges nothing; advice needs --workers 2 or more")
    titles = (*PLANS.values(), LAGS_ADAPTIVE)
    ranked = sorted(predictions(subject, network, titles), key=lambda one: (one.timeline.iteration, one.sent_bytes))
    if isinf(network.bandwidth):
        return Advice(subject, network, tuple(ranked), None, {})
    at = {gigabits: predictions(subject, network.at_bandwidth(1e9 * gigabits), titles) for gigabits in GRID}

    def best(gigabits: float) -> str:
        found = at.get(gigabits)
        return _best(found or predictions(subject, network.at_bandwidth(1e9 * gigabits), PLANS.values()))

    curves = {title: [found[number].timeline.iteration for found in at.values()] for number, title in enumerate(titles)}
    return Advice(subject, network, tuple(ranked), tuple(changes(best)), curves)


def _best(found: Sequence[Prediction]) -> str:
    """The simplest of the paper's methods that is as fast as the fastest."""
    seconds = {one.method: one.timeline.iteration for one in found if one.title in PLANS.values()}
    fastest = min(seconds.values())
    return next(method for method in _LABELS if seconds[method] <= fastest * (1 + MARGIN))


def _gets_faster(method: str) -> str:
    """'dense is as fast or faster', 'LAGS is faster': the simpler one is preferred among equals."""
    return f"{_LABELS[method]} is as fast or faster" if method == "dense" else f"{_LABELS[method]} is faster"

"""Events of one iteration on one process, and how much of the exchange they hide."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_TOUCHING = 1e-9  # seconds between events that follow one another


@dataclass(frozen=True)
class Event:
    """One interval: a phase, what it worked on, and start and end in seconds from the iteration's start."""

    phase: str
    label: str
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """The events of one iteration on one process, in any order."""

    events: tuple[Event, ...]

    @property
    def iteration(self) -> float:
        """Seconds from the first start to the last end."""
        return max(event.end for event in self.events) - min(event.start for event in self.events)

    def total(self, phase: str) -> float:
        """Seconds in which the phase is under way; what overlaps itself counts once."""
        return sum(end - start for start, end in self._spans(phase))

    @property
    def exchange_total(self) -> float:
        """Seconds in which some message is on the network."""
        return self.total("exchange")

    @property
    def exposed(self) -> float:
        """Seconds of exchange outside of back-propagation, which lasts from its first event to its last (S9).

        What is selected in between belongs to it: the computing thread is at work. A selection after the last gradient
        covers nothing.
        """
        backward = self._spans("backward")
        begin, stop = (backward[0][0], backward[-1][1]) if backward else (0.0, 0.0)
        covered = sum(max(0.0, min(end, stop) - max(start, begin)) for start, end in self._spans("exchange"))
        return max(0.0, self.exchange_total - covered)

    @property
    def hidden_share(self) -> float:
        """Share of the exchange that back-propagation covers, 0 to 1; 1 where nothing is exchanged."""
        return 1 - self.exposed / self.exchange_total if self.exchange_total else 1.0

    def condensed(self) -> "Timeline":
        """The same with back-propagation's events joined where one follows another: a prediction has one a layer."""
        out: list[Event] = []
        for event in sorted(self.events, key=lambda event: event.start):
            last = out[-1] if out else None
            if last and event.phase == last.phase == "backward" and event.start - last.end <= _TOUCHING:
                label = f"{last.label.partition(' .. ')[0]} .. {event.label}"
                out[-1] = Event("backward", label, last.start, event.end)
            else:
                out.append(event)
        return Timeline(tuple(out))

    def _spans(self, phase: str) -> list[tuple[float, float]]:
        """The phase's intervals, overlapping ones joined, in order."""
        return _joined((event.start, event.end) for event in self.events if event.phase == phase)


def common_hidden_share(timelines: Sequence[Timeline]) -> float | None:
    """The hidden share of all processes together; None where none of them exchanges anything."""
    total = sum(timeline.exchange_total for timeline in timelines)
    return 1 - sum(timeline.exposed for timeline in timelines) / total if total else None


def _joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out

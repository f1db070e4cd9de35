"""Where the time of an iteration goes, on this process."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# compute: forward and backward; select: accumulate and compress; exchange: starting collectives and waiting for them,
# which is what they cost, not how long they travel; apply: add up, clip, step; measure: the assumption.
PHASES = ("compute", "select", "exchange", "apply", "measure")
_GLANCE_SECONDS = 500e-6


class PhaseClock:
    """Adds up seconds by phase; with tracing on it also keeps every interval.

    Attributes:
        glance: seconds between two looks at whether a traced message has arrived.
        seconds: by phase, since the last `restart`; time in a phase that began inside another counts for the inner one.
        events: traced intervals: phase, label, and start and end on the machine's monotonic clock in seconds. A phase
            is traced as what `phase` is told; `exchange` is a message's way from start to arrival.
    """

    def __init__(self, glance: float = _GLANCE_SECONDS) -> None:
        self.glance = glance
        self.events: list[dict[str, Any]] = []
        self.restart(tracing=False)

    def restart(self, tracing: bool) -> None:
        """Begin an iteration."""
        self.tracing = tracing
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._inner: list[float] = []
        self.began = time.monotonic()

    @contextmanager
    def phase(self, name: str, label: str = "", traced_as: str | None = None) -> Iterator[None]:
        """Charge the enclosed work to a phase and, while tracing, note it as an event, unless `traced_as` is empty."""
        start = time.monotonic()
        self._inner.append(0.0)
        try:
            yield
        finally:
            end = time.monotonic()
            inside = self._inner.pop()
            self.seconds[name] += end - start - inside
            if self._inner:
                self._inner[-1] += end - start
            if self.tracing and traced_as != "":
                self.note(traced_as or name, label, start, end)

    def note(self, phase: str, label: str, start: float, end: float) -> None:
        """Add an event."""
        self.events.append({"phase": phase, "label": label, "start": start, "end": end})

    def row(self) -> dict[str, float]:
        """The iteration's columns: seconds of each phase, of the rest, and of the whole."""
        total = time.monotonic() - self.began
        rest = total - sum(self.seconds.values())
        return {f"{name}_s": s for name, s in self.seconds.items()} | {"other_s": rest, "iteration_s": total}


class ArrivalWatch:
    """Notes when messages arrive while the process computes: a thread that keeps asking, for traced iterations only."""

    def __init__(self, clock: PhaseClock):
        self.clock = clock
        self._travelling: list[tuple[str, float, Callable[[], bool], threading.Event]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def started(self, label: str, arrived: Callable[[], bool]) -> Callable[[], None]:
        """A message has just started; returns what blocks until it has been seen to arrive."""
        seen = threading.Event()
        self._travelling.append((label, time.monotonic(), arrived, seen))
        return lambda: seen.wait() and None

    def close(self) -> None:
        """End the thread once all messages have arrived."""
        self._closed = True
        self._thread.join()

    def _watch(self) -> None:
        while self._travelling or not self._closed:
            for message in list(self._travelling):
                label, start, arrived, seen = message
                if arrived():
                    self.clock.note("exchange", label, start, time.monotonic())
                    self._travelling.remove(message)
                    seen.set()
            time.sleep(self.clock.glance)

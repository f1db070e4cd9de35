"""Where the time of an iteration goes, on this process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# compute: forward and backward; select: accumulate and compress; exchange: from the first message's start until the
# last has arrived, unless the other phases run meanwhile; apply: add up, clip, step; measure: the assumption.
PHASES = ("compute", "select", "exchange", "apply", "measure")


class PhaseClock:
    """Adds up seconds by phase; with tracing on it also keeps every interval.

    Attributes:
        seconds: by phase, since the last `restart`.
        events: traced intervals: phase, label, and start and end on the machine's monotonic clock in seconds.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.restart(tracing=False)

    def restart(self, tracing: bool) -> None:
        """Begin an iteration."""
        self.tracing = tracing
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.began = time.monotonic()

    @contextmanager
    def phase(self, name: str, label: str = "") -> Iterator[None]:
        """Charge the enclosed work to a phase; phases do not nest."""
        start = time.monotonic()
        try:
            yield
        finally:
            end = time.monotonic()
            self.seconds[name] += end - start
            if self.tracing:
                self.events.append({"phase": name, "label": label, "start": start, "end": end})

    def row(self) -> dict[str, float]:
        """The iteration's columns: seconds of each phase, of the rest, and of the whole."""
        total = time.monotonic() - self.began
        rest = total - sum(self.seconds.values())
        return {f"{name}_s": s for name, s in self.seconds.items()} | {"other_s": rest, "iteration_s": total}

"""How busy this machine's cores are while messages travel."""

import threading
import time
from bisect import bisect_left, bisect_right

import psutil

_EVERY_SECONDS = 0.05


class CoreWatch:
    """Looks at the system's own counters in a thread, from now until `busy` is asked."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._samples = [_sample()]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            self._samples.append(_sample())

    def busy(self, spans: list[tuple[float, float]]) -> float:
        """Share of all cores that was busy from the first span's start to the last one's end; ends the watch.

        Args:
            spans: start and end on the machine's monotonic clock; without any, all of the time counts.
        """
        self._ended.set()
        self._thread.join()
        self._samples.append(_sample())
        moments = [moment for moment, _, _ in self._samples]
        first, last = 0, len(moments) - 1
        if spans:
            first = max(bisect_right(moments, min(start for start, _ in spans)) - 1, 0)
            last = min(bisect_left(moments, max(end for _, end in spans)), last)
        (_, idle, total), (_, idle_after, total_after) = self._samples[first], self._samples[max(last, first + 1)]
        passed = total_after - total
        return 1 - (idle_after - idle) / passed if passed else 0.0


def _sample() -> tuple[float, float, float]:
    """Now, and seconds that all cores together have been idle and have existed."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    return time.monotonic(), idle, sum(times)

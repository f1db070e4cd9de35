"""Time stamps for records: wall time that never goes backwards within a run, whatever is done to the system's clock."""

import time


class RecordClock:
    """Wall time at the start, carried on by the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._offset + time.monotonic()

    def continue_after(self, timestamp: float) -> None:
        """Give no time before `timestamp`: an earlier part of the run has it."""
        self._offset = max(self._offset, timestamp - time.monotonic())

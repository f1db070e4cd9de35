"""A progress bar on a terminal, plain lines elsewhere."""

import os
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def on_terminal() -> bool:
    """Whether a person is watching. A rank under mpirun has a terminal of mpirun's own: the launcher's word counts."""
    return sys.stdout.isatty() and "SUITE_PLAIN" not in os.environ


class TrainingProgress:
    """Reports iterations and epochs of one run; silent on every process but the first."""

    def __init__(self, title: str, total: int, done: int, enabled: bool):
        self.title, self.enabled, self.began = title, enabled, time.monotonic()
        self.bar = None
        if enabled and on_terminal():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, TextColumn("{task.fields[note]}"), console=Console())
            self.task = self.bar.add_task(title, total=total, completed=done, note="")
            self.bar.start()

    def iteration(self, loss: float) -> None:
        """One more iteration is done."""
        if self.bar is not None:
            self.bar.update(self.task, advance=1, note=f"loss {loss:.3f}")

    def epoch(self, epoch: int, iteration: int, note: str) -> None:
        """An epoch has been evaluated."""
        if self.enabled:
            line = f"{self.title}: epoch {epoch}, iteration {iteration}, {note}, {time.monotonic() - self.began:.0f} s"
            (self.bar.console.print if self.bar is not None else print)(line)
            sys.stdout.flush()

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self.bar is not None:
            self.bar.stop()

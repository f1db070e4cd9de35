"""Runs of `suite train` that something happens to."""

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from helpers import ranks_of, tiny_settings

FAULTY = Path(__file__).with_name("faulty.py")
LENGTH = 120  # iterations of an undisturbed run
ENDLESS = "train.max_iterations=100000"
VIRTUAL = {"processes": 1, "transport": "virtual"}
TRAIN = {"epochs": 5000, "batch_size": 2, "checkpoint_every": 20, "max_iterations": LENGTH}


class Attempt:
    """A run of `suite train` in a folder, as a user starts it, and what can happen to it."""

    def __init__(self, config: Path, out: Path):
        self.config, self.out = config, out
        self.output = ""

    def start(
        self, *settings: str, fault: tuple[str, int, int] | None = None, prefix: Sequence[str] = (), **options
    ) -> subprocess.Popen:
        """`fault`: what goes wrong, on which rank, in which iteration; see faulty.py."""
        program = ["-m", "suite"] if fault is None else [str(FAULTY), *map(str, fault)]
        command = [*prefix, sys.executable, *program, "train", str(self.config), "--out", str(self.out)]
        command += [word for setting in settings for word in ("--set", setting)]
        self.process = subprocess.Popen(
            command, cwd=self.config.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )
        return self.process

    def wait_for(self, pattern: str = "checkpoint/step-*") -> float:
        """Until a file of the run's is there; returns the monotonic time."""
        deadline = time.monotonic() + 120
        while not list(self.out.glob(pattern)):
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < deadline, f"no {pattern} appeared"
            time.sleep(0.02)
        return time.monotonic()

    def end(self, code: int, shared: bool = False, timeout: float = 120) -> str:
        """Wait for the end with this exit code; returns the sentence the user reads last.

        No rank may be left, unless the folder is `shared` with another attempt.
        """
        self.output, _ = self.process.communicate(timeout=timeout)
        assert self.process.returncode == code, self.output
        assert shared or not self.ranks(), "a rank is left"
        return self.sentence()

    def sentence(self) -> str:
        """The command's own sentence, its log's tail and the folder's path taken out."""
        at = self.output.rfind("\nsuite: ") if not self.output.startswith("suite: ") else 0
        text = self.output[at:].strip().removeprefix("suite: ")
        first = re.split("; (?:the end of )?its log", text)[0]
        return first.replace(str(self.out), "RUN")

    def ranks(self) -> list[psutil.Process]:
        """Living rank processes, in rank order."""
        return ranks_of(self.out)


def settings(**sections) -> dict:
    """The tiny run on 2 processes, with sections laid over."""
    values = tiny_settings() | {"train": TRAIN, "world": {"workers": 4, "processes": 2, "transport": "torch"}}
    return {name: section | sections.get(name, {}) for name, section in values.items()}

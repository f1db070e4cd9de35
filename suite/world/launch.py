"""Starts the processes of a run, watches them, and ends them all when one fails."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

from suite.config.experiment import WorldConfig
from suite.errors import Interrupted, SuiteError
from suite.world.ranks import LOOPBACK, Failure, RankNetwork, command_line, rank_environments
from suite.world.slurm import SlurmRanks, allocation_for

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 5.0  # between asking ranks to end and killing them, once one has failed
_TAIL_LINES = 15


class Ranks(Protocol):
    """The processes of one run, wherever they are."""

    def started(self) -> AbstractContextManager["Ranks"]:
        """Start them; while the context is open they find each other."""
        ...

    def running(self) -> bool:
        """Whether any has not ended."""
        ...

    def failures(self) -> list[Failure]:
        """Those that have not ended with 0, the first cause first where that is known."""
        ...

    def ask_to_stop(self) -> bool:
        """Send SIGTERM to each rank and return at once; whether they can have got it yet."""
        ...

    def end(self, patience: float) -> None:
        """End whatever still runs, gently for so many seconds."""
        ...


def launch(config: WorldConfig, rank_command: list[str], logs: Path, network: RankNetwork | None = None) -> None:
    """Run a command as each rank and wait for all.

    Inside of a Slurm job of several tasks the ranks are those tasks; elsewhere, or when `network` says what carries
    their messages, they are processes of this machine. Rank 0 writes to this process's output; all others, and
    everybody's errors, to `logs`/rank-N.log.

    Raises:
        ConfigError: the Slurm job this process is in is too small for the world.
        SuiteError: a rank failed; the message names the first one with the end of its log, and all are gone.
        Interrupted: this process or a rank got SIGINT or SIGTERM and the ranks have written their checkpoint.
    """
    found = allocation_for(config) if network is None else None
    logs.mkdir(parents=True, exist_ok=True)
    ranks: Ranks = (
        SlurmRanks(config, found, rank_command, logs)
        if found
        else LocalRanks(config, rank_command, logs, network or LOOPBACK)
    )
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with ranks.started():
            try:
                _watch(ranks, caught, logs)
            finally:
                ranks.end(_GRACE_SECONDS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class LocalRanks:
    """Processes of this machine."""

    def __init__(self, config: WorldConfig, command: list[str], logs: Path, network: RankNetwork):
        self._config, self._network = config, network
        self._command, self._logs = command_line(config, command), logs

    @contextmanager
    def started(self) -> Iterator["LocalRanks"]:
        with rank_environments(self._config, self._network) as environments:
            self._ranks = [_Rank(self._command, env, i, self._logs) for i, env in enumerate(environments)]
            yield self

    def running(self) -> bool:
        return any(rank.process.poll() is None for rank in self._ranks)

    def failures(self) -> list[Failure]:
        bad = [rank.failure() for rank in self._ranks if rank.process.poll() not in (None, 0)]
        # The others fail within moments because their partner is gone; a rank a signal killed is the cause.
        return sorted(bad, key=lambda failure: (failure.code > 0, failure.rank))

    def ask_to_stop(self) -> bool:
        for rank in self._ranks:
            rank.signal(signal.SIGTERM)
        return True

    def end(self, patience: float) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.running():
                return
            for rank in self._ranks:
                rank.signal(number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline and self.running():
                time.sleep(_POLL_SECONDS)


class _Rank:
    """A started process. Its own session keeps a terminal's Ctrl-C away: the launcher passes signals on."""

    def __init__(self, command: list[str], env: dict[str, str], number: int, logs: Path):
        self.number, self.log = number, logs / f"rank-{number}.log"
        with open(self.log, "wb") as log:
            out = None if number == 0 else log
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
            )

    def signal(self, number: int) -> None:
        """Send a signal to the rank and everything it started."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def failure(self) -> Failure:
        """How it ended."""
        code = self.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return Failure(self.number, how, code, self.log)


def _watch(ranks: Ranks, caught: list[int], logs: Path) -> None:
    """Wait until all have ended well; raise for the first that has not."""
    forwarded = False
    while ranks.running():
        if caught and not forwarded:
            forwarded = ranks.ask_to_stop()
        if caught.count(signal.SIGINT) > 1:
            raise Interrupted(
                f"stopped at once by a second Ctrl-C; the last checkpoint is intact, and {Interrupted.promise}",
                signal.SIGINT,
            )
        _raise_first_failure(ranks, caught)
        time.sleep(_POLL_SECONDS)
    _raise_first_failure(ranks, caught)
    if stopped := ranks.failures():
        said = [line for log in (stopped[0].log, logs / "rank-0.log") for line in _tail(log).splitlines()]
        # Others write into these logs too: Slurm, Python's warnings.
        silent = f"stopped by signal before it trained; {Interrupted.promise}"
        words = next((line for line in reversed(said) if Interrupted.promise in line), silent)
        raise Interrupted(words.removeprefix("suite: "), caught[0] if caught else signal.SIGTERM)


def _stopped_as_asked(failure: Failure, caught: list[int]) -> bool:
    """Whether a signal ended it with its checkpoint written, or so early that it had not begun to listen.

    mpirun reports 1 whatever its ranks report, and srun ends a rank that is on its way out when another one is gone.
    """
    if failure.code == 128 + signal.SIGTERM or (caught and failure.code == -signal.SIGTERM):
        return True
    return (bool(caught) or failure.code == -signal.SIGTERM) and Interrupted.promise in _tail(failure.log)


def _raise_first_failure(ranks: Ranks, caught: list[int]) -> None:
    failed = [failure for failure in ranks.failures() if not _stopped_as_asked(failure, caught)]
    if failed:
        first = failed[0]
        tail = _tail(first.log)
        end = f"; the end of its log {first.log}:\n{tail}" if tail else f"; its log {first.log} is empty"
        who = "starting the ranks failed:" if first.rank is None else f"rank {first.rank}"
        raise SuiteError(f"{who} {first.how} and all ranks were ended{end}")


def _tail(log: Path) -> str:
    """The end of a log."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-_TAIL_LINES:])

"""Starts the processes of a run on this machine, watches them, and ends them all when one fails."""

import os
import signal
import subprocess
import time
from pathlib import Path
from types import FrameType

from suite.config.experiment import WorldConfig
from suite.errors import Interrupted, SuiteError
from suite.world.ranks import LOOPBACK, RankNetwork, command_line, rank_environments

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 5.0  # between asking ranks to end and killing them, once one has failed
_TAIL_LINES = 15


def launch(config: WorldConfig, rank_command: list[str], logs: Path, network: RankNetwork = LOOPBACK) -> None:
    """Run a command as each rank and wait for all.

    Rank 0 writes to this process's output; all others, and everybody's errors, to `logs`/rank-N.log.

    Raises:
        SuiteError: a rank failed; the message names the first one with the end of its log, and all are gone.
        Interrupted: this process got SIGINT or SIGTERM and the ranks have written their checkpoint.
    """
    logs.mkdir(parents=True, exist_ok=True)
    command = command_line(config, rank_command)
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with rank_environments(config, network) as environments:
            ranks = [_Rank(command, env, i, logs) for i, env in enumerate(environments)]
            try:
                _watch(ranks, caught)
            finally:
                _end(ranks)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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

    def stopped_as_asked(self, caught: list[int]) -> bool:
        """Whether a signal ended it with its checkpoint written; mpirun reports 1 whatever its ranks report."""
        return self.process.returncode == 128 + signal.SIGTERM or bool(caught) and Interrupted.promise in self.tail()

    def tail(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def _watch(ranks: list[_Rank], caught: list[int]) -> None:
    """Wait until all have ended well; raise for the first that has not."""
    forwarded = False
    while any(rank.process.poll() is None for rank in ranks):
        if caught and not forwarded:
            forwarded = True
            for rank in ranks:
                rank.signal(signal.SIGTERM)
        _raise_first_failure(ranks, caught)
        time.sleep(_POLL_SECONDS)
    _raise_first_failure(ranks, caught)
    if any(rank.process.returncode for rank in ranks):
        last_line = ranks[0].tail().splitlines()[-1].removeprefix("suite: ")
        raise Interrupted(last_line, caught[0] if caught else signal.SIGTERM)


def _raise_first_failure(ranks: list[_Rank], caught: list[int]) -> None:
    failed = [rank for rank in ranks if rank.process.poll() not in (None, 0) and not rank.stopped_as_asked(caught)]
    if failed:
        # The others fail within moments because their partner is gone; a rank a signal killed is the cause.
        raise _failure(min(failed, key=lambda rank: (rank.process.returncode > 0, rank.number)))


def _failure(rank: _Rank) -> SuiteError:
    code = rank.process.returncode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    tail = rank.tail()
    end = f"; the end of its log {rank.log}:\n{tail}" if tail else f"; its log {rank.log} is empty"
    return SuiteError(f"rank {rank.number} {how} and all ranks were ended{end}")


def _end(ranks: list[_Rank]) -> None:
    """Ask what still runs to end, then kill it."""
    for number, patience in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, _GRACE_SECONDS)):
        if all(rank.process.poll() is not None for rank in ranks):
            return
        for rank in ranks:
            rank.signal(number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(rank.process.poll() is None for rank in ranks):
            time.sleep(_POLL_SECONDS)

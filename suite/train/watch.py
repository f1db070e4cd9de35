"""Ends a run in which nothing moves any more, and says which ranks the others were waiting for.

A rank that was stopped, or loops for ever, breaks no connection: its partners would wait as long as the allocation
lasts. So a thread of every rank keeps a note of what the rank is doing in the run's folder, which all ranks share, and
reads the others' when its own rank does not get on.
"""

import faulthandler
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from suite.errors import Stalled
from suite.words import listing

_LONGEST_TICK = 5.0  # seconds between two looks, where the limit allows so many
_TICKS = 8  # looks within a limit


@dataclass
class Note:
    """What a rank is doing.

    Attributes:
        ticks: looks its watch has taken; they stop with the process.
        beats: steps it has taken.
        doing: the present one, in words that follow the rank's name.
        waiting: whether it waits for others.
        patient: whether the step may take as long as it likes while the process answers.
    """

    ticks: int = 0
    beats: int = 0
    doing: str = "starts"
    waiting: bool = False
    patient: bool = False


class StallWatch:
    """The watch of one rank; a context, which ends the process where nothing has moved for `limit` seconds."""

    def __init__(
        self, folder: Path, rank: int, ranks: int, limit: float | None, report: Callable[[Stalled], None] = print
    ):
        """Args:
        folder: for notes, shared by all ranks.
        limit: seconds; None watches nothing.
        report: is told the reason before the process ends.
        """
        self.folder, self.rank, self.limit, self.report = folder, rank, limit, report
        self.note, self._ended = Note(), threading.Event()
        self._tick = min((limit or 0) / _TICKS, _LONGEST_TICK)
        self._others = {other: _Seen() for other in range(ranks) if other != rank}
        self._beats, self._moved = -1, 0.0
        self._looked: float | None = None

    def beat(self, doing: str, waiting: bool = False, patient: bool = False) -> None:
        """The rank takes its next step; see `Note`."""
        note = self.note
        note.doing, note.waiting, note.patient = doing, waiting, patient
        note.beats += 1

    def __enter__(self) -> "StallWatch":
        if self.limit is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            threading.Thread(target=self._run, name="stall watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.is_set():
            now = time.monotonic()
            if self.look(now):
                return self._end(now)
            self._ended.wait(self._tick)

    def look(self, now: float) -> bool:
        """Leave a note and look around at monotonic time `now`; whether nothing has moved for the limit."""
        # A watch that slept much longer than asked was stopped itself, as when a whole job is suspended.
        slept = self._looked is None or now - self._looked > 4 * self._tick + 1
        moves = slept or self.note.patient or self.note.beats != self._beats
        self._beats, self._looked = self.note.beats, now
        self.note.ticks += 1
        self._write()
        # Somebody else's progress is only asked for while this rank makes none.
        if moves or self._others_move(now):
            self._moved = now
        return now - self._moved > self.limit

    def _path(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.json"

    def _write(self) -> None:
        aside = self.folder / f".rank-{self.rank}.part"
        try:
            aside.write_text(json.dumps(asdict(self.note)))
            os.replace(aside, self._path(self.rank))
        except OSError:
            pass  # a full disk is for the checkpoint to tell

    def _others_move(self, now: float) -> bool:
        moves = False
        for other, seen in self._others.items():
            try:
                note = Note(**json.loads(self._path(other).read_text()))
            except (OSError, ValueError, TypeError):
                continue
            if seen.note is None or note.ticks != seen.note.ticks:
                seen.answered = now
                moves |= note.patient or seen.note is None or note.beats != seen.note.beats
            seen.note = note
        return moves

    def _end(self, now: float) -> None:
        error = Stalled(self.sentence(now))
        if not self.note.waiting:
            faulthandler.dump_traceback()  # where this rank hangs
        self.report(error)
        print(f"suite: {error}", file=sys.stderr, flush=True)
        os._exit(error.exit_code)

    def sentence(self, now: float) -> str:
        """Who has not arrived, as far as this rank can tell."""
        absent = [] if self.note.waiting else [f"rank {self.rank} {self.note.doing}"]
        for other, seen in self._others.items():
            if seen.note is None:
                absent.append(f"rank {other} has not started")
            elif now - seen.answered > self.limit / 2:
                absent.append(f"rank {other} does not answer (stopped, or its host is gone; it last {seen.note.doing})")
            elif not seen.note.waiting:
                absent.append(f"rank {other} {seen.note.doing}")
        who = listing(absent) if absent else "all ranks wait for each other"
        waits = f", while rank {self.rank} {self.note.doing}" if self.note.waiting else ""
        return (
            f"nothing moved for {self.limit:g} s (train.stall_limit): {who}{waits}; the last checkpoint is intact, and "
            "the same command continues from it"
        )


@dataclass
class _Seen:
    """What this rank knows of another one: its last note, and when it last answered (monotonic seconds)."""

    note: Note | None = None
    answered: float = 0.0

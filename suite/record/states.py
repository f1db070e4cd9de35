"""What became of every cell of a profile: a failed run is a result too, and has to be seen beside the finished ones."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd

from suite.config.profiles import Cell, profile_cells
from suite.errors import Diverged, Interrupted, Stalled, SuiteError
from suite.record.atomic import replacing
from suite.record.run_folder import RunFolder

DONE, RUNNING, NOT_RUN = "done", "running", "not run"
FAILED, DIVERGED, TIMED_OUT, STOPPED = SuiteError.kind, Diverged.kind, Stalled.kind, Interrupted.kind
STATES = (DONE, FAILED, DIVERGED, TIMED_OUT, STOPPED, RUNNING, NOT_RUN)

_TAIL_LINES = 15
_TAIL_BYTES = 8192  # of a log that are read for its last lines


@dataclass(frozen=True)
class CellState:
    """A row of tables/states.csv.

    Attributes:
        run: the cell's address.
        state: one of STATES. Only a complete summary makes a cell done; a run that nobody tells about and whose folder
            no process holds was stopped, as by SIGKILL or a power cut.
        iteration: at which it ended where that is known, else the newest checkpoint's; None without one, and once done.
        reason: the sentence it ended with; empty where there is none.
        log: the log that tells more, relative to the profile's folder; empty where there is none.
        last_lines: its end; empty for a cell that is done.
    """

    run: str
    experiment: str
    title: str
    method: str
    seed: int
    state: str
    iteration: int | None = None
    reason: str = ""
    log: str = ""
    last_lines: str = ""


def cell_states(results: Path) -> list[CellState]:
    """The state of every cell of the profile whose folder `results` is, in the order of its experiments file."""
    return [_state(results, cell) for cell in profile_cells(results.name)]


def write_states(results: Path) -> Path:
    """Write results/<profile>/tables/states.csv, a row a cell, and return its path."""
    path = results / "tables" / "states.csv"
    with replacing(path) as aside:
        table = pd.DataFrame(
            [asdict(state) for state in cell_states(results)], columns=[f.name for f in fields(CellState)]
        )
        table.astype({"iteration": "Int64"}).to_csv(aside, index=False)
    return path


def _state(results: Path, cell: Cell) -> CellState:
    folder = RunFolder(results / "runs" / cell.folder)
    keys = (cell.address, cell.experiment, cell.title, cell.method, cell.seed)
    if folder.read_summary() is not None:
        return CellState(*keys, DONE)
    log = results / "logs" / "train" / f"{cell.folder.replace('/', '-')}.log"
    tail = _tail(log)
    told = {"log": str(log.relative_to(results)) if tail else "", "last_lines": "\n".join(tail)}
    if folder.is_claimed():
        return CellState(*keys, RUNNING, _checkpoint(folder), **told)
    failure = folder.read_failure()
    if failure is not None:
        iteration = failure["iteration"] if failure["iteration"] is not None else _checkpoint(folder)
        return CellState(*keys, failure["kind"], iteration, failure["sentence"], **told)
    # Inputs are checked before a folder is touched, and a disk may be too full for failure.json: then the log tells.
    told_why = next((line.removeprefix("suite: ") for line in reversed(tail) if line.startswith("suite: ")), None)
    if told_why is not None:
        state = STOPPED if Interrupted.promise in told_why else FAILED
        return CellState(*keys, state, _checkpoint(folder), told_why, **told)
    if folder.config.exists():
        return CellState(*keys, STOPPED, _checkpoint(folder), "it ended without a word, as by SIGKILL", **told)
    return CellState(*keys, NOT_RUN)


def _checkpoint(folder: RunFolder) -> int | None:
    steps = sorted(folder.checkpoint.glob("step-*"))
    return int(steps[-1].name.removeprefix("step-")) if steps else None


def _tail(log: Path) -> list[str]:
    try:
        with open(log, "rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError:
        return []

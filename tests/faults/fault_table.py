"""The table of docs/faults.md: a row a test, filled in by what the test saw."""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from helpers import ROOT

PAGE = ROOT / "docs" / "faults.md"
MODULES = ("test_fault_ranks", "test_fault_starts", "test_fault_files", "test_fault_surroundings", "test_fault_cluster")
_COLUMNS = ("what happens", "expected", "seen", "seconds to the end", "lost")


@dataclass
class Row:
    """One fault.

    Attributes:
        seen: what the user reads, or what else tells of the outcome.
        seconds: from the fault to the end of what it ended.
        lost: of finished work, after the same command has been run again.
    """

    action: str
    expected: str
    seen: str = ""
    seconds: float = 0.0
    lost: str = ""

    @contextmanager
    def timed(self) -> Iterator[None]:
        """From the fault to its end."""
        began = monotonic()
        yield
        self.seconds += monotonic() - began

    def cells(self) -> tuple[str, ...]:
        text = [self.action, self.expected, self.seen, f"{self.seconds:.1f}", self.lost]
        return tuple(" ".join(part.split()).replace("|", "\\|") for part in text)


def fault(action: str, expected: str) -> Callable[[Callable], Callable]:
    """Make a test a row of the table."""

    def mark(test: Callable) -> Callable:
        test.fault = (action, expected)
        return pytest.mark.slow(test)

    return mark


def planned() -> list[tuple[str, str]]:
    """Action and expectation of every row, in the order of the tests, read from their source."""
    found = []
    for name in MODULES:
        tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
        for test in tree.body:
            for mark in getattr(test, "decorator_list", ()):
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "fault":
                    found.append(tuple(ast.literal_eval(argument) for argument in mark.args))
    return found


def write_row(row: Row) -> None:
    """Put the row in docs/faults.md in place of the one that was there; rows come in the order of the tests."""
    known = {tuple(cells[:2]): cells for cells in rows_of(PAGE)} if PAGE.exists() else {}
    known[row.action, row.expected] = row.cells()
    ordered = [known[key] for key in planned() if key in known]
    lines = [f"| {' | '.join(cells)} |" for cells in (_COLUMNS, ["---"] * len(_COLUMNS), *ordered)]
    PAGE.write_text(_ABOVE + "\n".join(lines) + "\n", encoding="utf-8")


def rows_of(path: Path) -> list[list[str]]:
    """The cells of the page's rows."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[2:]]


_ABOVE = """# Faults

What goes wrong, and what then happens: each row is a test with real processes, and what it saw on two cores.
`python -m pytest tests/faults --write-faults` runs them and brings this page up to date.

Unless a row says otherwise the run is an LSTM with 4 workers on 2 processes, with a checkpoint every 20 iterations.
"Nothing" in the last column: what was left of the run, continued, ended with the parameters of an undisturbed run, bit
for bit; iterations since the last checkpoint are computed again. RUN stands for the run's folder.

"""

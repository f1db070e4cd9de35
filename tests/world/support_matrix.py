"""The support matrix of docs/methods.md: a row a method, a column a placement of the battery, filled in by tests."""

from collections import Counter
from pathlib import Path

from helpers import ROOT
from suite.methods import METHODS, build_method, settings_from
from suite.plan import Layout

PAGE = ROOT / "docs" / "methods.md"
VIRTUAL = "virtual"
# Transport, controller and number of processes of every placement whose bits are compared with the virtual world's.
PLACEMENTS = (
    [("torch", "gloo", n) for n in (1, 2, 4)] + [("horovod", "gloo", n) for n in (1, 2, 4)] + [("horovod", "mpi", 2)]
)
WIDEST = ("torch", "gloo", 16)
_NAMES = {"torch": "torch.distributed", "horovod": "Horovod"}
_FACTS = ("method", "called", "travels by", "all-reduce", "settings")
YES, OPEN = "✓", "–"


def column(transport: str, controller: str, processes: int) -> str:
    """A placement's column."""
    return f"{_NAMES[transport]}{' over MPI' if controller == 'mpi' else ''}, {processes}"


def columns() -> list[str]:
    """All placements, the virtual world first."""
    return [VIRTUAL, *(column(*placement) for placement in [*PLACEMENTS, WIDEST])]


def facts(cases: dict[str, dict]) -> dict[str, tuple[str, ...]]:
    """By method, the cells before the placements.

    Args:
        cases: what the battery runs, by name, each with its settings.
    """
    counts = Counter(case["method"]["name"] for case in cases.values())
    layout = Layout.of([("weight", (4, 3)), ("bias", (4,))])
    found = {}
    for name in sorted(METHODS):
        method = build_method(settings_from(name))
        sparse = method.plan(layout, 0).is_sparse
        travels = method.collective_name(sparse)
        found[name] = (f"`{name}`", method.label, travels, "no" if sparse else "yes", str(counts[name]))
    return found


def rows_of(page: Path) -> list[list[str]]:
    """The cells of the page's table, its head first."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [head, *rows]


def write_columns(cases: dict[str, dict], *passed: str) -> None:
    """Mark in docs/methods.md that all methods have passed the battery in these columns; others stay as they were."""
    seen = {}
    if PAGE.exists():
        head, *rows = rows_of(PAGE)
        seen = {(row[0], name): cell for row in rows for name, cell in zip(head, row, strict=True)}
    names = columns()
    lines = [[*_FACTS, *names], ["---"] * (len(_FACTS) + len(names))]
    for cells in facts(cases).values():
        marks = [YES if name in passed else seen.get((cells[0], name), OPEN) for name in names]
        lines.append([*cells, *marks])
    PAGE.write_text(_ABOVE + "".join(f"| {' | '.join(cells)} |\n" for cells in lines), encoding="utf-8")


_ABOVE = """# Methods

Every method trains over every transport, and 16 workers end with the same bits however many processes they are on,
where values are all-reduced under `world.deterministic: true`: ✓ is a test that found so, on as many processes as the
column says. `python -m pytest tests/world/test_battery.py --write-methods` runs them and brings this page up to date.

*Settings* is the number of configurations of the method that were compared: its defaults, and others that travel in
another way. *All-reduce* says whether a plain all-reduce can carry it, because every worker's values mean the same
entries; all else is gathered, gTop-k's tree too. What each costs and what a worker keeps for it is measured in every
run: a profile's report has a table, that of `field` of all of them on one problem. `suite.DistributedOptimizer` takes
those that exchange gradients; those that average parameters train in `suite train`, and their averages inside of groups
have a test of their own (`tests/world/test_local_battery.py`).

"""

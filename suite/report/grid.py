"""The grid of a profile's cells: experiment and method by seed, each with what became of it."""

from pathlib import Path
from typing import Any

import pandas as pd

from suite.record.states import DONE, STATES
from suite.report.read import read_table
from suite.words import listing

_COLUMNS = ("run", "experiment", "title", "method", "seed", "state", "iteration", "reason", "log", "last_lines")


def read_grid(results: Path) -> dict[str, Any] | None:
    """What the report's section on cells shows of tables/states.csv; None without that table.

    Keys: summary (a sentence), seeds (the columns), rows (title, method and a state a seed, None where the grid has no
    such cell), open (a dictionary a cell that is not done, with the table's columns).
    """
    path = results / "tables" / "states.csv"
    if not path.exists():
        return None
    states = read_table(path, _COLUMNS, text=("reason", "log", "last_lines", "state"))
    states = states.fillna({"reason": "", "log": "", "last_lines": ""}).astype({"iteration": "Int64"})
    seeds = sorted(states.seed.unique())
    rows = []
    for (_, method), of in states.groupby(["experiment", "method"], sort=False):
        by_seed = dict(zip(of.seed, of.state, strict=True))
        rows.append({"title": of.title.iloc[0], "method": method, "states": [by_seed.get(seed) for seed in seeds]})
    open_cells = states[states.state != DONE]
    return {"summary": _summary(states), "seeds": seeds, "rows": rows, "open": open_cells.to_dict("records")}


def _summary(states: pd.DataFrame) -> str:
    counts = states.state.value_counts()
    rest = [f"{counts[state]} {state}" for state in STATES if state != DONE and state in counts]
    text = f"{counts.get(DONE, 0)} of {len(states)} cells are done"
    return f"{text}, {listing(rest)}." if rest else f"{text}."

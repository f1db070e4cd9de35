"""Iteration times on networks of hosts, as several figures read them."""

import pandas as pd

from plots.tables import Tables
from suite.speed.paper import PLANS

CELL = ["model", "network", "method"]


def paper_plans(tables: Tables, study: str, selection: str = "published") -> pd.DataFrame:
    """The predictions of one study for the plan each of the paper's methods runs by."""
    rows = tables.predicted
    return rows[(rows.study == study) & (rows.selection == selection) & (rows.plan == rows.method.map(PLANS))]


def emulated_cells(tables: Tables) -> pd.DataFrame:
    """A row an emulated cell with the authors' selection times: CELL, workers, emulated_in, emulated_s (the median of
    its iterations), predicted_s."""
    rows = tables.emulated[tables.emulated.selection == "published"]
    groups = rows.groupby([*CELL, "workers", "emulated_in"], sort=False)
    return groups.agg(
        emulated_s=("iteration_s", "median"), predicted_s=("predicted_s", "first"), iterations=("iteration_s", "count")
    ).reset_index()


def milliseconds(seconds: float) -> str:
    """'347 ms', '1,625 ms'; a dash for nothing."""
    return "–" if pd.isna(seconds) else f"{1e3 * seconds:,.0f} ms"

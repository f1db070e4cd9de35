"""Numbers that decide over claims: one value a seed, computed from the tidy tables."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from suite.claims.model import Check
from suite.errors import SuiteError


@dataclass(frozen=True)
class Tables:
    """The tables a measure may read."""

    runs: pd.DataFrame
    assumption: pd.DataFrame


def read_tables(results: Path) -> Tables:
    """Read results/<profile>/tables."""
    frames = {}
    for name in Tables.__dataclass_fields__:
        path = results / "tables" / f"{name}.csv"
        try:
            frames[name] = pd.read_csv(path)
        except (OSError, ValueError) as error:
            raise SuiteError(
                f"{path} is missing or damaged; run `suite aggregate {results.name}` to rebuild it"
            ) from error
    return Tables(**frames)


def values_by_seed(check: Check, tables: Tables) -> tuple[pd.Series, list[str]]:
    """The check's value for every seed, and the runs it was computed from.

    Returns:
        (values indexed by seed, empty when there are no such runs; run ids).
    """
    ours = _runs_of(check.method, check, tables)
    if check.measure == "delta_share":
        return _delta_share(check, tables) * check.scale, list(ours["run_id"])
    if check.measure == "hidden_share":
        ours = ours.dropna(subset="hidden_share")
        return ours["hidden_share"] * check.scale, list(ours["run_id"])
    both = ours.join(_runs_of(check.against, check, tables).add_suffix("_against"), how="inner")
    first, second = both["final"], both["final_against"]
    values = first - second if check.measure == "difference" else first / second
    return values * check.scale, [*both["run_id"], *both["run_id_against"]]


def _runs_of(method: str, check: Check, tables: Tables) -> pd.DataFrame:
    runs = tables.runs
    return runs[(runs["experiment"] == check.experiment) & (runs["method"] == method)].set_index("seed")[
        ["final", "hidden_share", "run_id"]
    ]


def _delta_share(check: Check, tables: Tables) -> pd.Series:
    frame = tables.assumption
    frame = frame[(frame["experiment"] == check.experiment) & (frame["method"] == check.method) & (frame["points"] > 0)]
    groups = frame.groupby("seed")
    if check.by == "epoch":
        return groups["delta_mean"].apply(lambda mean: (mean <= 1).mean())
    return 1 - groups["above_one"].sum() / groups["points"].sum()

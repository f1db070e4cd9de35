"""Numbers that decide over claims, computed from the tidy tables: one a seed, an emulated iteration or a prediction."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from suite.claims.model import RunCheck
from suite.errors import SuiteError

# What makes a table anew, for those that are not made from training runs.
_BY_TIMES = ("predicted", "emulated", "emulated_timeline")


@dataclass(frozen=True)
class Tables:
    """The tables a measure may read."""

    runs: pd.DataFrame
    assumption: pd.DataFrame
    predicted: pd.DataFrame
    emulated: pd.DataFrame
    emulated_timeline: pd.DataFrame


@dataclass(frozen=True)
class Values:
    """What a check measured.

    Attributes:
        values: in the check's unit, empty when there is nothing to measure.
        each: what one of them is of, such as "seed".
        runs: the runs they come from: ids of training runs, folders of emulations.
        model: the model that decided, where one of several does.
        missing: why there are no values.
    """

    values: pd.Series
    each: str
    runs: list[str]
    model: str = ""
    missing: str = ""


def read_tables(results: Path) -> Tables:
    """Read results/<profile>/tables."""
    frames = {}
    for name in Tables.__dataclass_fields__:
        path = results / "tables" / f"{name}.csv"
        try:
            frames[name] = pd.read_csv(path)
        except (OSError, ValueError) as error:
            command = "times" if name in _BY_TIMES else "aggregate"
            raise SuiteError(
                f"{path} is missing or damaged; run `suite {command} {results.name}` to rebuild it"
            ) from error
    return Tables(**frames)


def values_by_seed(check: RunCheck, tables: Tables) -> Values:
    """The check's value for every seed, indexed by seed."""
    ours = _runs_of(check.method, check, tables)
    if check.measure == "delta_share":
        values, runs = _delta_share(check, tables), ours["run_id"]
    elif check.measure == "hidden_share":
        ours = ours.dropna(subset="hidden_share")
        values, runs = ours["hidden_share"], ours["run_id"]
    else:
        both = ours.join(_runs_of(check.against, check, tables).add_suffix("_against"), how="inner")
        first, second = both["final"], both["final_against"]
        values = first - second if check.measure == "difference" else first / second
        runs = [*both["run_id"], *both["run_id_against"]]
    missing = f"no finished runs of experiment {check.experiment} measured it"
    return Values(values * check.scale, "seed", list(runs), missing=missing)


def _runs_of(method: str, check: RunCheck, tables: Tables) -> pd.DataFrame:
    runs = tables.runs
    return runs[(runs["experiment"] == check.experiment) & (runs["method"] == method)].set_index("seed")[
        ["final", "hidden_share", "run_id"]
    ]


def _delta_share(check: RunCheck, tables: Tables) -> pd.Series:
    frame = tables.assumption
    frame = frame[(frame["experiment"] == check.experiment) & (frame["method"] == check.method) & (frame["points"] > 0)]
    groups = frame.groupby("seed")
    if check.by == "epoch":
        return groups["delta_mean"].apply(lambda mean: (mean <= 1).mean())
    return 1 - groups["above_one"].sum() / groups["points"].sum()

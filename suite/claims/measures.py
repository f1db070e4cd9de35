"""Numbers that decide over claims, computed from the tidy tables: one a seed, an emulated iteration or a prediction."""

import math
from dataclasses import dataclass, field, fields
from pathlib import Path

import pandas as pd

from suite.claims.model import RunCheck
from suite.config.profiles import profile_cells
from suite.errors import SuiteError
from suite.record.rate import rate_points, slopes
from suite.record.reach import higher_is_better, spent_until, training_time
from suite.words import method_label, network_name, plural

# What makes a table anew, for those that are not made from training runs.
_BY_TIMES = ("predicted", "emulated", "emulated_timeline", "run_times")
_RUN_TIMES = ["experiment", "method", "network", "iteration_s", "compute_s"]
_OBSERVATIONS = ["experiment", "method", "seed", "quantity", "points", "mean", "above_0"]


@dataclass(frozen=True)
class Tables:
    """The tables a measure may read.

    Attributes:
        planned: the profile's cells: experiment, method, seed. Without any, what is there is taken for all.
    """

    runs: pd.DataFrame
    assumption: pd.DataFrame
    predicted: pd.DataFrame
    emulated: pd.DataFrame
    emulated_timeline: pd.DataFrame
    epochs: pd.DataFrame = field(default_factory=pd.DataFrame)
    run_times: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_RUN_TIMES))
    observations: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=_OBSERVATIONS))
    planned: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["experiment", "method", "seed"]))


@dataclass(frozen=True)
class Values:
    """What a check measured.

    Attributes:
        values: in the check's unit, empty when there is nothing to measure.
        each: what one of them is of, such as "seed".
        runs: the runs they come from: ids of training runs, folders of emulations.
        model: the model that decided, where one of several does.
        missing: why there are no values, or not all of them; empty where they are all there.
        note: what else is to be said of them, as the end of a sentence.
    """

    values: pd.Series
    each: str
    runs: list[str]
    model: str = ""
    missing: str = ""
    note: str = ""


def read_tables(results: Path) -> Tables:
    """Read results/<profile>/tables; a profile may do without run_times.csv and observations.csv."""
    frames = {}
    for name in (table.name for table in fields(Tables) if table.name != "planned"):
        path = results / "tables" / f"{name}.csv"
        try:
            frames[name] = pd.read_csv(path)
        except (OSError, ValueError) as error:
            if name in ("run_times", "observations") and isinstance(error, FileNotFoundError):
                continue
            command = "times" if name in _BY_TIMES else "aggregate"
            raise SuiteError(
                f"{path} is missing or damaged; run `suite {command} {results.name}` to rebuild it"
            ) from error
    cells = [(cell.experiment, cell.method, cell.seed) for cell in profile_cells(results.name)]
    return Tables(**frames, planned=pd.DataFrame(cells, columns=["experiment", "method", "seed"]))


def values_of_runs(check: RunCheck, tables: Tables) -> Values:
    """The check's value for every seed, indexed by seed; or the one value that is predicted."""
    if check.measure == "iteration_ratio":
        return _iteration_ratio(check, tables)
    if check.measure == "rate":
        return _rate(check, tables)
    ours = _runs_of(check.method, check, tables)
    runs, note = ours, ""
    if check.measure == "delta_share":
        values = _delta_share(check, tables)
    elif check.measure == "observed":
        values = _observed(check.method, check, tables)
        if check.against:
            values = (values - _observed(check.against, check, tables)).dropna()
    elif check.measure == "hidden_share":
        values = ours["hidden_share"].dropna()
    elif check.measure == "value":
        values = ours["value"].dropna()
    else:
        runs = ours.join(_runs_of(check.against, check, tables).add_suffix("_against"), how="inner")
        if check.measure == "time_to_goal":
            values, note = _time_to_goal(check, tables)
        elif check.measure == "difference":
            values = (runs["value"] - runs["value_against"]).dropna()
        else:
            values = (runs["value"] / runs["value_against"]).dropna()
    missing = _unfinished(check, tables)
    if values.empty:
        missing = missing or note or f"no finished runs of experiment {check.experiment} measured it"
    ids = runs[runs.index.isin(values.index)].filter(like="run_id")
    return Values(values * check.scale, "seed", [run for column in ids for run in ids[column]], "", missing, note)


def _methods(check: RunCheck) -> set[str]:
    """The methods whose runs a check needs."""
    goal = {check.goal} if check.measure == "time_to_goal" else set()
    return {check.method, *goal} | ({check.against} if check.against else set())


def _unfinished(check: RunCheck, tables: Tables) -> str:
    """How many of the seeds that the profile plans are finished, where some are not; else empty."""

    def seeds(table: pd.DataFrame) -> set[int]:
        own = table[table["experiment"] == check.experiment]
        return set.intersection(*(set(own.loc[own["method"] == method, "seed"]) for method in _methods(check)))

    planned = seeds(tables.planned)
    done = planned & seeds(tables.runs)
    return f"{len(done)} of {plural(len(planned), 'seed')} finished" if len(done) < len(planned) else ""


def _runs_of(method: str, check: RunCheck, tables: Tables) -> pd.DataFrame:
    """The method's finished runs by seed: hidden_share, run_id and the `value` that counts, NaN where it has none."""
    runs = _own(tables.runs, method, check)
    if check.epoch is None:
        value = runs[check.of]
    else:
        epochs = _own(tables.epochs, method, check)
        value = epochs.loc[epochs["epoch"] == check.epoch, "value"].reindex(runs.index)
    return runs[["hidden_share", "run_id"]].assign(value=value)


def _own(table: pd.DataFrame, method: str, check: RunCheck) -> pd.DataFrame:
    return table[(table["experiment"] == check.experiment) & (table["method"] == method)].set_index("seed")


def _observed(method: str, check: RunCheck, tables: Tables) -> pd.Series:
    frame = _own(tables.observations, method, check)
    frame = frame[frame["quantity"] == check.quantity]
    column = frame["above_0"] if check.statistic == "share_above_0" else frame["mean"] * frame["points"]
    return (column.groupby("seed").sum() / frame["points"].groupby("seed").sum()).astype(float)


def _delta_share(check: RunCheck, tables: Tables) -> pd.Series:
    frame = tables.assumption
    frame = frame[(frame["experiment"] == check.experiment) & (frame["method"] == check.method) & (frame["points"] > 0)]
    groups = frame.groupby("seed")
    if check.by == "epoch":
        return groups["delta_mean"].apply(lambda mean: (mean <= 1).mean())
    return 1 - groups["above_one"].sum() / groups["points"].sum()


def _rate(check: RunCheck, tables: Tables) -> Values:
    """Slopes by seed, of seeds whose runs of every planned length are finished."""
    planned = tables.planned[tables.planned["experiment"] == check.experiment].assign(
        of=lambda own: own["method"].str.rpartition("-")[0]
    )
    planned = planned[planned["of"].isin(_methods(check))]
    finished = tables.runs[["experiment", "method", "seed", "run_id"]].merge(planned)
    lengths, seeds = planned["method"].nunique(), planned["seed"].nunique()
    complete = finished.groupby("seed")["method"].nunique().loc[lambda count: count == lengths].index
    points = rate_points(tables.runs, tables.epochs)
    points = points[(points["experiment"] == check.experiment) & points["seed"].isin(complete)]
    found = slopes(points).pivot(index="seed", columns="method_name", values="mean")
    values = pd.Series(dtype=float)
    if _methods(check) <= set(found.columns):
        values = found[check.method] - (found[check.against] if check.against else 0)
    missing = f"{len(complete)} of {plural(seeds, 'seed')} finished" if len(complete) < seeds or not seeds else ""
    runs = list(finished.loc[finished["seed"].isin(complete), "run_id"])
    return Values(values * check.scale, "seed", runs, missing=missing)


def _iteration_time(check: RunCheck, method: str, tables: Tables) -> float:
    """Predicted seconds of an iteration; NaN where there is no prediction."""
    rows = tables.run_times
    rows = rows[(rows["experiment"] == check.experiment) & (rows["method"] == method)]
    found = rows.loc[rows["network"] == check.network, "iteration_s"]
    return float(found.iloc[0]) if len(found) else math.nan


def _not_predicted(check: RunCheck) -> str:
    return f"iterations of experiment {check.experiment} were not predicted on {network_name(check.network)}"


def _iteration_ratio(check: RunCheck, tables: Tables) -> Values:
    ratio = _iteration_time(check, check.method, tables) / _iteration_time(check, check.against, tables)
    if math.isnan(ratio):
        return Values(pd.Series(dtype=float), "prediction", [], missing=_not_predicted(check))
    return Values(pd.Series([ratio * check.scale]), "prediction", [])


def _time_to_goal(check: RunCheck, tables: Tables) -> tuple[pd.Series, str]:
    """Time of `against` to the goal over that of `method`, by seed, and what is to be said of it.

    0 where `method` never gets there. Where only `against` never does, its time is at least that of its whole run,
    which is what counts then: less than there is to gain.
    """
    epochs = tables.epochs[tables.epochs["experiment"] == check.experiment]
    predicted = tables.run_times[
        (tables.run_times["experiment"] == check.experiment) & (tables.run_times["network"] == check.network)
    ]
    timed = training_time(epochs, predicted)
    if not {check.method, check.against} <= set(timed["method"]):
        return pd.Series(dtype=float), _not_predicted(check)
    values, never = {}, []
    for seed, of in epochs.groupby("seed"):
        by_method = {method: own.sort_values("epoch") for method, own in of.groupby("method")}
        if not _methods(check) <= by_method.keys():
            continue
        last = by_method[check.goal].iloc[-1]
        better = higher_is_better(last["metric"])
        goal = last["value"] - check.tolerance if better else last["value"] * (1 + check.tolerance)
        times = timed[timed["seed"] == seed].groupby("method")
        own, other = (spent_until(times.get_group(name), goal, "time") for name in (check.method, check.against))
        other = min(other, times.get_group(check.against)["time"].max())
        values[seed] = other / own  # 0 for never, an infinite time
        never += [seed] if math.isinf(own) else []
    note = f"{method_label(check.method)} never gets there in {len(never)} of {plural(len(values), 'seed')}"
    return pd.Series(values, dtype=float).rename_axis("seed"), note if never else ""

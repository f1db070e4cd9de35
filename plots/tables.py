"""Reads the tidy tables of one profile and picks out what belongs together.

Sizes are in entries, times in seconds, bytes are those sent by one worker, accuracies are fractions from 0 to 1.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from plots.style import Look, looks, series_text
from suite.record.rate import rate_points, slopes

# What the figures read of each table; further columns are welcome and ignored. Cells of a number column may be empty.
_TEXT = {
    "runs": "experiment title method method_name label task transport metric error_feedback lr_placement adaptive "
    "precision channels_last collective all_reduce own_parts",
    "epochs": "experiment title method method_name label metric",
    "losses": "experiment method label",
    "assumption": "experiment method label segment",
    "delta_by_kind": "experiment method label kind k_is_one",
    "assumption_iterations": "experiment method label segment",
    "phases": "experiment method label transport phase",
    "timeline": "experiment method label kind phase event",
    "predicted": "study model network selection plan method",
    "crossings": "model selection plan_against",
    "iteration_times": "model method network",
    "emulated": "emulated_in model method network selection",
    "emulated_timeline": "emulated_in model method network selection kind phase event",
    "run_times": "experiment method network source",
    "states": "run state",
}
_NUMBERS = {
    "runs": "seed workers processes density ratio_cap final iterations bytes_sent hidden_share rounds own_bytes",
    "epochs": "seed density epoch iteration train_loss value bytes_sent rounds batches",
    "losses": "seed iteration epoch lr loss",
    "assumption": "seed points delta_max above_one",
    "delta_by_kind": "seed segments smallest_d largest_d points above_one delta_q05 delta_q25 delta_median delta_q75 "
    "delta_q95 delta_max opposed overshoot short",
    "assumption_iterations": "seed iteration position d k delta norm_ratio",
    "phases": "seed workers processes median_s",
    "timeline": "seed rank start end",
    "predicted": "bandwidth workers forward_s backward_s select_s exchange_s iteration_s",
    "crossings": "workers ratio bandwidth highest_ratio lowest_ratio",
    "iteration_times": "workers published_s predicted_s emulated_s bound_s",
    "emulated": "workers predicted_s iteration_s",
    "emulated_timeline": "workers start end",
    "run_times": "workers iteration_s compute_s",
    "states": "seed",
}
_FLAGS = {"error_feedback", "adaptive", "k_is_one"}
# A profile may do without these.
_OPTIONAL = ("run_times", "states")


class TableError(Exception):
    """A table is not there or cannot be used. The message is one sentence with the fix."""


@dataclass(frozen=True)
class Tables:
    """The tables of one profile, as data frames with at least the columns above.

    Of run_times.csv `run_times` has what is predicted, `refused` what is not: there `source` says why.
    """

    runs: pd.DataFrame
    epochs: pd.DataFrame
    losses: pd.DataFrame
    assumption: pd.DataFrame
    delta_by_kind: pd.DataFrame
    assumption_iterations: pd.DataFrame
    phases: pd.DataFrame
    timeline: pd.DataFrame
    predicted: pd.DataFrame
    crossings: pd.DataFrame
    iteration_times: pd.DataFrame
    emulated: pd.DataFrame
    emulated_timeline: pd.DataFrame
    run_times: pd.DataFrame
    refused: pd.DataFrame
    states: pd.DataFrame

    @classmethod
    def read(cls, results: Path) -> "Tables":
        """Read results/<profile>/tables/*.csv; raises TableError."""
        found = {name: _read(results / "tables" / f"{name}.csv", name) for name in _TEXT}
        times = found.pop("run_times")
        predicted = times.iteration_s.notna()
        return cls(**found, run_times=times[predicted], refused=times[~predicted])

    @cached_property
    def ablated(self) -> pd.Series:
        """For each run: whether error feedback was switched off in a method that elsewhere uses it."""
        with_it = self.runs.loc[self.runs.error_feedback, "method_name"]
        return ~self.runs.error_feedback & self.runs.density.notna() & self.runs.method_name.isin(with_it)

    @cached_property
    def comparisons(self) -> list[str]:
        """Experiments that set methods side by side: at least two methods, each run in one way only.

        That leaves out sweeps, ablations and runs whose test metric means nothing. Where a task was run with several
        seeds, further experiments of it with one seed are left out as well: they were made for another purpose, such as
        timing.
        """
        ablations = set(self.runs.experiment[self.ablated])
        found = {
            name: of
            for name, of in self._scored.groupby("experiment", sort=False)
            if of.method_name.nunique() == of.method.nunique() >= 2 and name not in ablations
        }
        several = {task for of in found.values() if of.seed.nunique() >= 2 for task in of.task}
        return [name for name, of in found.items() if of.seed.nunique() >= 2 or not several & set(of.task)]

    def title(self, experiment: str) -> str:
        """What people call the experiment."""
        return self.runs.loc[self.runs.experiment == experiment, "title"].iloc[0]

    def method_name(self, experiment: str, method: str) -> str:
        """The method behind a label of an experiment."""
        runs = self.runs
        return runs.loc[(runs.experiment == experiment) & (runs.method == method), "method_name"].iloc[0]

    @cached_property
    def distinct_runs(self) -> pd.DataFrame:
        """Runs with a test metric, without repetitions: one a task, method, density, use of the residual and seed.

        A task is everything but the method (see suite.record.aggregate), so runs of one may share an axis. The same
        cell on more processes gives the same result and must not count as another seed. Left out are variants with
        figures of their own: adaptive ratios, and the learning rate inside of the accumulation where it is outside of
        it, too.
        """
        runs = self.runs.assign(ablated=self.ablated)
        outside, ways = runs.lr_placement == "outside", runs.task + runs.method_name
        runs = runs[runs.final.notna() & ~runs.adaptive & (outside | ~ways.isin(ways[outside]))]
        return runs.drop_duplicates(["task", "method_name", "density", "ablated", "seed"])

    @cached_property
    def variants(self) -> list[str]:
        """Experiments that run a method in several ways which only their names tell apart.

        Left out are the ways that have figures of their own: density, residual, adaptive ratios, where the learning
        rate enters, and how long a run is where the full gradient is known.
        """
        known = {"density", "ablated", "adaptive", "ratio_cap", "lr_placement"}
        cells = self._scored.assign(ablated=self.ablated).drop_duplicates(["experiment", "method"])
        alike = cells.duplicated(["experiment", "method_name", *known])
        rates = set(slopes(rate_points(self.runs, self.epochs)).experiment)
        return [name for name in cells.experiment[alike].unique() if name not in rates]

    @cached_property
    def side_by_side(self) -> list[str]:
        """Experiments whose curves may share an axis, comparisons first."""
        return [*self.comparisons, *(name for name in self.variants if name not in self.comparisons)]

    def told_apart_by(self, experiment: str) -> str:
        """The column that names the curves of an experiment of `side_by_side` in words."""
        return "method" if experiment in self.variants else "label"

    def with_series(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows of an experiment of `side_by_side`, with what tells its curves apart.

        `series` is what a legend calls them, and `look` the name by which they get their look.
        """
        if rows.experiment.iloc[0] in self.variants:
            return rows.assign(series=rows.method, look=rows.method)
        series = [series_text(label, density) for label, density in zip(rows.label, rows.density, strict=True)]
        return rows.assign(series=series, look=rows.method_name)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Of every `look` of the profile's experiments that are set side by side."""
        return looks([*self.runs.method_name, *self.runs.method[self.runs.experiment.isin(self.variants)]])

    @property
    def _scored(self) -> pd.DataFrame:
        """Runs whose test metric means something: the table leaves it empty where data were made for timings."""
        return self.runs[self.runs.final.notna()]


def _read(path: Path, name: str) -> pd.DataFrame:
    text, numbers = _TEXT[name].split(), _NUMBERS[name].split()
    try:
        table = pd.read_csv(path, dtype={column: str for column in text})
    except FileNotFoundError as error:
        if name in _OPTIONAL:
            return pd.DataFrame(columns=[*text, *numbers])
        raise TableError(f"there is no table {path}; make it with `snakemake {path}`") from error
    except (ValueError, UnicodeDecodeError) as error:  # pandas' parser errors are ValueErrors
        reason = " ".join(str(error).split())
        raise TableError(f"{path} is not a readable CSV table ({reason}); delete it and make it again") from error
    missing = [column for column in (*text, *numbers) if column not in table]
    if missing:
        raise TableError(f"{path} lacks the column {', '.join(missing)}; delete it and make it again")
    for column in numbers:
        try:
            table[column] = pd.to_numeric(table[column])
        except ValueError as error:
            raise TableError(f"{path} has text in its number column {column}; delete it and make it again") from error
    for column in _FLAGS & set(table.columns):
        table[column] = table[column] == "True"
    return table

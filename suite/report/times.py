"""Iteration times on a network, side by side: published, predicted, emulated, and what follows from them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd

from suite.report.read import read_table
from suite.speed.paper import PLANS
from suite.speed.published import largest_gain

SOURCES = ("published", "predicted", "emulated")
SELECTIONS = {"published": "the authors' selection", "ours": "our selection"}
WORKERS = 16
_COLUMNS = {
    "iteration_times": "model method network workers published_s predicted_s emulated_s bound_s emulated_low_s "
    "emulated_high_s iterations stretch emulated_in run",
    "predicted": "study model network bandwidth workers selection plan method forward_s backward_s select_s exchange_s "
    "iteration_s",
    "crossings": "model selection workers plan_against ratio bandwidth highest_ratio lowest_ratio",
    "emulated": "model method network workers selection iteration_s",
}
_TEXT = ("model", "method", "network", "emulated_in", "run", "study", "selection", "plan", "plan_against")


@dataclass(frozen=True)
class SideBySide:
    """One model on one network by one source, in seconds an iteration; NaN where the source does not say.

    Attributes:
        forward, backward, select: the authors' times, the last one SLGS-SGD's; S_max is made of them.
        slgs_bound: what SLGS-SGD computes and selects; the rest of its iteration is exchange, which it cannot hide.
    """

    model: str
    network: str
    source: str
    dense: float
    slgs: float
    lags: float
    forward: float
    backward: float
    select: float
    slgs_bound: float

    @property
    def dense_over_lags(self) -> float:
        """S1."""
        return self.dense / self.lags

    @property
    def saved(self) -> float:
        """S2."""
        return 1 - self.lags / self.slgs

    @property
    def slgs_over_lags(self) -> float:
        """What pipelining gains."""
        return self.slgs / self.lags

    @property
    def bound_selection(self) -> float:
        """S_max with the selection time for communication, as the authors' script has it."""
        return largest_gain(self.forward, self.backward, self.select)

    @property
    def bound_exchange(self) -> float:
        """S_max with the exchange of SLGS-SGD for communication."""
        exchange = self.slgs - self.slgs_bound
        return largest_gain(self.forward, self.backward, exchange) if exchange > 0 else float("nan")

    @property
    def share_selection(self) -> float:
        """How much of the gain that S_max allows is there."""
        return (self.slgs_over_lags - 1) / (self.bound_selection - 1)

    @property
    def share_exchange(self) -> float:
        """The same with the other S_max."""
        return (self.slgs_over_lags - 1) / (self.bound_exchange - 1)


@dataclass(frozen=True)
class Choice:
    """One model on one network with one selection.

    Attributes:
        select: seconds of selecting layer by layer.
        predicted, emulated: seconds of an iteration by method; NaN where there is none. Dense selects nothing.
    """

    model: str
    network: str
    selection: str
    select: float
    predicted: dict[str, float]
    emulated: dict[str, float]


@dataclass(frozen=True)
class Crossing:
    """Where dense / LAGS equals a ratio: Gb/s, NaN where never; and the ratio's range over all bandwidths searched."""

    ratio: float
    bandwidth: float
    highest: float
    lowest: float


@dataclass(frozen=True)
class IterationTimes:
    """The tables of iteration times of one profile.

    Attributes:
        profile: its name.
        cells: iteration_times.csv.
        predicted: predicted.csv.
        crossings: crossings.csv.
        iterations: emulated.csv.
    """

    profile: str
    cells: pd.DataFrame
    predicted: pd.DataFrame
    crossings: pd.DataFrame
    iterations: pd.DataFrame

    @classmethod
    def read(cls, results: Path) -> "IterationTimes":
        """Read results/<profile>/tables; raises ConfigError."""
        found = {
            name: read_table(results / "tables" / f"{name}.csv", columns.split(), set(_TEXT) & set(columns.split()))
            for name, columns in _COLUMNS.items()
        }
        return cls(results.name, *(found[name] for name in ("iteration_times", "predicted", "crossings", "emulated")))

    @property
    def emulated(self) -> pd.DataFrame:
        """The cells that are emulated."""
        return self.cells[self.cells.emulated_s.notna()]

    def side_by_side(self) -> list[SideBySide]:
        """A row a model, network and source that has a time of any method."""
        out = []
        for (model, network), of in self.cells.groupby(["model", "network"], sort=False):
            by_method = of.set_index("method")
            costs = self._predicted("times", model=model, network=network, selection="published", plan=PLANS["slgs"])
            if costs.empty:
                continue
            first = costs.iloc[0]
            for source in SOURCES:
                times = {method: by_method[f"{source}_s"].get(method, float("nan")) for method in PLANS}
                if any(pd.notna(time) for time in times.values()):
                    out.append(SideBySide(
                        model=model, network=network, source=source, **times, forward=first.forward_s,
                        backward=first.backward_s, select=first.select_s, slgs_bound=by_method.bound_s["slgs"],
                    ))  # fmt: skip
        return out

    def choices(self) -> list[Choice]:
        """Both costs of selection, for each model and network of the side by side; empty where ours is not known."""
        networks = list(self.cells.network.unique())
        rows = self._predicted("times")
        rows = rows[rows.network.isin(networks) & (rows.plan == rows.method.map(PLANS))]
        if set(rows.selection) != set(SELECTIONS):
            return []
        keys, out = ["model", "network", "selection", "method"], []
        predicted = rows.set_index(keys)
        emulated = self.iterations[self.iterations.workers == WORKERS].groupby(keys).iteration_s.median().to_dict()
        for cell in product(rows.model.unique(), networks, SELECTIONS):
            selections = {method: "published" if method == "dense" else cell[2] for method in PLANS}
            seconds = {
                method: emulated.get((*cell[:2], selection, method), float("nan"))
                for method, selection in selections.items()
            }
            times = {method: predicted.iteration_s[*cell, method] for method in PLANS}
            out.append(Choice(*cell, predicted.select_s[*cell, "lags"], times, seconds))
        return out

    def ratios(self) -> list[float]:
        """The ratios that were searched, 1 first."""
        return sorted(self.crossings.ratio.unique())

    def crossing_rows(self) -> Iterator[tuple[str, str, str, list[Crossing]]]:
        """Model, selection and dense plan, and a crossing for each of `ratios`."""
        rows = self.crossings[self.crossings.workers == WORKERS]
        for (model, selection, plan), of in rows.groupby(["model", "selection", "plan_against"], sort=False):
            of = of.sort_values("ratio")
            found = [Crossing(row.ratio, row.bandwidth, row.highest_ratio, row.lowest_ratio) for row in of.itertuples()]
            yield model, selection, plan, found

    def speedups(self, bandwidth: float, selection: str, plan: str) -> dict[str, float]:
        """Predicted time of the dense plan over that of LAGS-SGD by model, at `bandwidth` Gb/s."""
        rows = self._predicted("sweep", bandwidth=bandwidth, selection=selection, workers=WORKERS)
        dense, lags = (rows[rows.plan == name].set_index("model").iteration_s for name in (plan, PLANS["lags"]))
        return (dense / lags).to_dict()

    def exchange(self, model: str, network: str, method: str) -> float:
        """Predicted seconds of a method's whole exchange, hidden or not; NaN where it was not predicted."""
        rows = self._predicted("times", model=model, network=network, selection="published", plan=PLANS[method])
        return rows.exchange_s.iloc[0] if len(rows) else float("nan")

    def _predicted(self, study: str, **values: object) -> pd.DataFrame:
        rows = self.predicted[self.predicted.study == study]
        for column, value in values.items():
            rows = rows[rows[column] == value]
        return rows

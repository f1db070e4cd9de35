"""Measures of whole iterations on a network of hosts: from the tables of predicted and emulated times, or predicted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from suite.claims.measures import Tables, Values
from suite.claims.model import PredictedCheck, TimeCheck
from suite.speed.networks import network_at
from suite.speed.paper import PLANS
from suite.speed.predictions import predicted_with
from suite.speed.published import largest_gain
from suite.speed.subject import read_subject
from suite.timeline import Event, Timeline
from suite.words import method_label, network_name


class Missing(Exception):
    """There is no such cell; the message says which, as the end of a sentence."""


@dataclass(frozen=True)
class Cell:
    """A model's iterations with one method on one network, by the authors' computation and selection times.

    Attributes:
        seconds: of each emulated iteration, or of the predicted one.
        forward, backward, select: seconds of computation and selection, the same in every iteration.
        exchange: seconds in which a message is on its way: predicted, or in the traced emulated iteration.
        runs: folders of the emulation.
    """

    seconds: np.ndarray
    forward: float
    backward: float
    select: float
    exchange: float
    runs: list[str]

    @property
    def exposed(self) -> np.ndarray:
        """Seconds by which each iteration is longer than what it computes and selects."""
        return np.maximum(0.0, self.seconds - self.forward - self.backward - self.select)


def values_of_times(check: TimeCheck, tables: Tables) -> Values:
    """The check's values over its models; none, with the reason, where one of the cells it needs is missing."""
    each = "emulated iteration" if check.evidence == "emulated" else "prediction"
    runs: list[str] = []

    @cache
    def cell(model: str, method: str, network: str) -> Cell:
        found = _cell(check, tables, model, method, network)
        runs.extend(run for run in found.runs if run not in runs)
        return found

    try:
        values, model = _over_models(check, cell)
    except Missing as reason:
        return Values(pd.Series(dtype=float), each, [], missing=str(reason))
    return Values(pd.Series(values) * check.scale, each, runs, model)


def values_predicted(check: PredictedCheck) -> Values:
    """The check's one value, predicted now.

    Raises:
        ConfigError: there is no such model, network or method.
    """
    subject = read_subject(check.model).with_shapes()

    def gain(workers: int) -> float:
        network = network_at(check.network, workers)
        against, own = (predicted_with(values, subject, network) for values in (check.against, check.method))
        return against.timeline.iteration / own.timeline.iteration

    value = gain(check.workers) / (gain(check.relative_to_workers) if check.relative_to_workers else 1)
    return Values(pd.Series([value]) * check.scale, "prediction", [])


def _over_models(check: TimeCheck, cell: Callable[[str, str, str], Cell]) -> tuple[np.ndarray, str]:
    """Values of the model whose median is the lowest or highest, with its name; or means over all models."""
    by_model = {}
    for model in check.models:
        values = _measure(check, lambda method, model=model: cell(model, method, check.network))
        if check.relative_to is not None:
            beside = _measure(check, lambda method, model=model: cell(model, method, check.relative_to))
            values = np.divide(*_paired(values, beside))
        by_model[model] = values
    if check.over == "mean":
        return np.mean(_paired(*by_model.values()), axis=0), ""
    pick = min if check.over == "lowest" else max
    model = pick(by_model, key=lambda name: np.median(by_model[name]))
    return by_model[model], model


def _measure(check: TimeCheck, cell: Callable[[str], Cell]) -> np.ndarray:
    """One model's values on one network; `cell` finds a method's."""
    if check.measure == "hidden_share":
        own = cell(check.method)
        return 1 - own.exposed / own.exchange
    if check.measure == "pipelining_share":
        slgs, lags = cell("slgs"), cell("lags")
        # SLGS-SGD sends after everything else, so all of its exchange is exposed.
        waits = slgs.select if check.communication == "selection" else float(np.median(slgs.exposed))
        gain = np.divide(*_paired(slgs.seconds, lags.seconds)) - 1
        return gain / (largest_gain(slgs.forward, slgs.backward, waits) - 1)
    against, own = _paired(cell(check.against).seconds, cell(check.method).seconds)
    return against / own if check.measure == "speedup" else 1 - own / against


def _paired(*series: np.ndarray) -> list[np.ndarray]:
    """Series cut to the shortest: the iterations of two emulations have nothing to do with each other."""
    length = min(len(values) for values in series)
    return [values[:length] for values in series]


def _cell(check: TimeCheck, tables: Tables, model: str, method: str, network: str) -> Cell:
    where = {"model": model, "method": method, "network": network, "workers": check.workers}
    what = f"{model} with {method_label(method)} on {network_name(network)}, {check.workers} workers"
    own = where | {"study": "times", "selection": "published", "plan": PLANS.get(method, method)}
    predicted = _matching(tables.predicted, own)
    if predicted.empty:
        raise Missing(f"{what}, was not predicted")
    row = predicted.iloc[0]
    costs = (row["forward_s"], row["backward_s"], row["select_s"])
    if check.evidence == "predicted":
        return Cell(np.array([row["iteration_s"]]), *costs, row["exchange_s"], [])
    emulated = _matching(tables.emulated, where | {"selection": "published"})
    if emulated.empty:
        raise Missing(f"{what}, was not emulated")
    exchange = np.nan
    if check.measure == "hidden_share":
        events = _matching(tables.emulated_timeline, where | {"selection": "published", "kind": "traced"})
        exchange = Timeline(
            tuple(Event(e.phase, "", e.start, e.end) for e in events.itertuples(index=False))
        ).exchange_total
        if not exchange > 0:
            raise Missing(f"no message was traced for {what}")
    return Cell(emulated["iteration_s"].to_numpy(), *costs, exchange, list(dict.fromkeys(emulated["run"])))


def _matching(table: pd.DataFrame, values: dict[str, object]) -> pd.DataFrame:
    """The rows that have all of these values."""
    for column, value in values.items():
        table = table[table[column] == value]
    return table

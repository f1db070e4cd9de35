"""What each method of an experiment costs: how workers exchange, what they send, keep and, predicted, wait for."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from suite.words import listing, network_name


@dataclass(frozen=True)
class MethodCosts:
    """One experiment's table.

    Attributes:
        title: of the experiment.
        networks: that iterations were predicted for, by name.
        rows: a dictionary a method: label, density, lr, collective and all_reduce (None where the run's version did not
            write them), sent (bytes of one worker an iteration), iterations, rounds, own_bytes, own_parts, seconds (of
            an iteration, by network). Means over seeds; NaN where nothing is known.
        refused: a sentence a method that has no prediction.
    """

    title: str
    networks: list[str]
    rows: list[dict[str, Any]]
    refused: list[str]


def method_costs(runs: pd.DataFrame, run_times: pd.DataFrame) -> list[MethodCosts]:
    """A table for every experiment that runs several methods.

    Args:
        runs: the table runs.csv.
        run_times: the table run_times.csv, or one without rows.
    """
    several = runs.groupby("experiment").method_name.transform("nunique") >= 2
    tables = runs[several].groupby("experiment", sort=False)
    return [_costs(of, run_times[run_times.experiment == experiment]) for experiment, of in tables]


def _costs(runs: pd.DataFrame, times: pd.DataFrame) -> MethodCosts:
    networks = list(dict.fromkeys(times.network))
    seconds = times.set_index(["method", "network"]).iteration_s
    rows = []
    for method, of in runs.groupby("method", sort=False):
        first = of.iloc[0]
        rows.append({
            "label": first.label, "density": first.density, "lr": first.lr,
            "collective": first.collective if pd.notna(first.collective) else None,
            "all_reduce": bool(first.all_reduce) if pd.notna(first.all_reduce) else None,
            "sent": (of.bytes_sent / of.iterations).mean(), "iterations": of.iterations.mean(),
            "rounds": of.rounds.mean(), "own_bytes": of.own_bytes.mean(),
            "own_parts": "" if pd.isna(first.own_parts) else first.own_parts,
            "seconds": {network: seconds.get((method, network), float("nan")) for network in networks},
        })  # fmt: skip
    return MethodCosts(runs.title.iloc[0], networks, rows, list(_refused(runs, times)))


def _refused(runs: pd.DataFrame, times: pd.DataFrame) -> list[str]:
    """Which of the methods have no prediction on which networks, and why."""
    labels = dict(zip(runs.method, runs.label, strict=True))
    without = times[times.iteration_s.isna() & times.method.isin(labels.keys())]
    groups = without.groupby(["method", "source"], sort=False).network.unique()
    return [
        f"{labels[method]} on {listing(map(network_name, networks))}: {reason}."
        for (method, reason), networks in groups.items()
    ]

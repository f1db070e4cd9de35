"""Plausible iteration times of four models on networks of hosts: tables of predictions, crossings and emulations.

Everything follows from a few constants, by overlap that hides as much of the exchange as back-propagation is long; an
emulated iteration is a predicted one, a few percent off.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd

# Model: forward, backward, selection over everything and layer by layer (seconds), million parameters, density.
MODELS = {
    "VGG-16": (0.021, 0.0313, 0.0767, 0.0737, 14.7, 0.001),
    "ResNet-50": (0.09, 0.12, 0.1376, 0.1321, 25.6, 0.001),
    "Inception-v4": (0.305, 0.524, 0.2368, 0.22, 42.7, 0.001),
    "LSTM-PTB": (0.076, 0.13089, 0.37548, 0.33875, 66.0, 0.004),
}
NETWORKS = {"1gbe": 1.0, "10gbe": 10.0, "25gbe": 25.0, "100gbe": 100.0, "1gbe-fitted": 1.0}
PLANS = {
    "dense, one message": "dense", "dense, merged": "dense", "SLGS": "slgs", "LAGS, merged": "lags",
    "LAGS adaptive, later": "lags",
}  # fmt: skip
OF_METHOD = {"dense": "dense, merged", "slgs": "SLGS", "lags": "LAGS, merged"}
PUBLISHED = {
    ("ResNet-50", "dense"): 1.45, ("ResNet-50", "slgs"): 0.666, ("ResNet-50", "lags"): 0.507,
    ("Inception-v4", "dense"): 3.85, ("Inception-v4", "slgs"): 1.602, ("Inception-v4", "lags"): 1.243,
    ("LSTM-PTB", "dense"): 7.80, ("LSTM-PTB", "slgs"): 1.019, ("LSTM-PTB", "lags"): 0.916,
    ("VGG-16", "slgs"): 0.336, ("VGG-16", "lags"): 0.331,
}  # fmt: skip
RATIOS = (1.0, 1.3, 2.86, 8.52)
ITERATIONS = 8


def predicted(model: str, plan: str, bandwidth: float, workers: int, selection: str = "published") -> dict[str, Any]:
    """One row's numbers: seconds of each phase and of the whole iteration, bytes, messages."""
    forward, backward, whole, layerwise, size, density = MODELS[model]
    method = PLANS[plan]
    latency = 8e-5 * (1 if bandwidth > 1 else 2)
    if method == "dense":
        select, entries = 0.0, 4e6 * size
        exchange = 2 * (workers - 1) * latency + 2 * (workers - 1) / workers * entries * 8e-9 / bandwidth
    else:
        select = whole if method == "slgs" else layerwise
        select *= 1 if selection == "published" else 0.03
        entries = 8e6 * size * density
        exchange = np.ceil(np.log2(workers)) * latency + (workers - 1) * entries * 8e-9 / bandwidth
    hides = plan not in ("dense, one message", "SLGS")
    exposed = max(0.08 * exchange, exchange - 0.9 * backward) if hides else exchange
    return {
        "density": np.nan if method == "dense" else density, "messages": 1 if not hides else 3, "bytes": entries,
        "forward_s": forward, "backward_s": backward, "select_s": select, "exchange_s": exchange, "exposed_s": exposed,
        "hidden_share": 1 - exposed / exchange, "iteration_s": forward + backward + select + exposed,
    }  # fmt: skip


def tables(emulated: bool = True) -> dict[str, pd.DataFrame]:
    """The tables by file name without suffix; `emulated` says whether anything was."""
    cells = list(_cells()) if emulated else []
    rows = [row for cell in cells for row in _repeats(cell)]
    events = [event for cell in cells if cell["workers"] == 16 for event in _events(cell)]
    return {
        "predicted": pd.DataFrame(list(_predictions())),
        "crossings": pd.DataFrame(list(_crossings())),
        "iteration_times": pd.DataFrame(list(_iteration_times(rows))),
        "emulated": pd.DataFrame(rows, columns=[*_CELL, "iteration", "iteration_s", "run"]),
        "emulated_timeline": pd.DataFrame(
            events, columns=["emulated_in", *_WHERE, "selection", "kind", "phase", "event", "start", "end"]
        ),
    }


_WHERE = ["model", "method", "network", "workers"]
_CELL = ["emulated_in", *_WHERE, "density", "selection", "stretch", "bound_s", "predicted_s", "cpu_busy"]


def _predictions() -> Iterator[dict[str, Any]]:
    """The three studies of predicted.csv."""
    powers = [2**n for n in range(1, 11)]
    studies = [("times", network, NETWORKS[network], 16) for network in NETWORKS]
    studies += [("sweep", "", g, p) for g in (1.0, 2.5, 5.0, 10.0, 25.0, 100.0) for p in powers if 4 <= p <= 64]
    studies += [("scaling", network, NETWORKS[network], p) for network in ("1gbe", "10gbe") for p in powers]
    for (study, network, bandwidth, workers), model, choice, plan in product(
        studies, MODELS, ("published", "ours"), PLANS
    ):
        yield {
            "study": study, "model": model, "network": network, "bandwidth": bandwidth, "workers": workers,
            "selection": choice, "plan": plan, "method": PLANS[plan],
        } | predicted(model, plan, bandwidth, workers, choice)  # fmt: skip


def _crossings() -> Iterator[dict[str, Any]]:
    """The lowest bandwidth on a grid at which dense over LAGS falls below a ratio."""
    grid = np.geomspace(0.1, 400, 100)
    for model, choice, plan in product(MODELS, ("published", "ours"), list(PLANS)[:2]):
        found = [
            predicted(model, plan, g, 16, choice)["iteration_s"]
            / predicted(model, "LAGS, merged", g, 16, choice)["iteration_s"]
            for g in grid
        ]
        for ratio in RATIOS:
            falls = [low for low, (a, b) in zip(grid, pairwise(found), strict=False) if a >= ratio > b]
            yield {
                "model": model, "selection": choice, "workers": 16, "plan_against": plan, "ratio": ratio,
                "bandwidth": falls[0] if falls else np.nan, "highest_ratio": max(found), "lowest_ratio": min(found),
            }  # fmt: skip


def _iteration_times(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for model, network, method in product(MODELS, ("1gbe", "10gbe"), OF_METHOD):
        found = predicted(model, OF_METHOD[method], NETWORKS[network], 16)
        where = {"model": model, "method": method, "network": network, "workers": 16}
        own = [row for row in rows if where.items() <= row.items()]
        times = [row["iteration_s"] for row in own]
        yield where | {
            "published_s": PUBLISHED.get((model, method), np.nan) if network == "1gbe" else np.nan,
            "predicted_s": found["iteration_s"], "emulated_s": np.median(times) if own else np.nan,
            "density": found["density"], "bound_s": found["forward_s"] + found["backward_s"] + found["select_s"],
            "emulated_low_s": min(times, default=np.nan), "emulated_high_s": max(times, default=np.nan),
            "iterations": len(own) or np.nan, "stretch": own[0]["stretch"] if own else np.nan,
            "emulated_in": own[0]["emulated_in"] if own else "", "run": own[0]["run"] if own else "",
        }  # fmt: skip


def _cells() -> Iterator[dict[str, Any]]:
    """Every cell of 16 workers, and fewer workers for ResNet-50; the profile's own are ResNet-50's on 1 GbE."""
    for model, network, method, workers in product(MODELS, ("1gbe", "10gbe"), OF_METHOD, (2, 4, 8, 16)):
        if workers != 16 and model != "ResNet-50":
            continue
        found = predicted(model, OF_METHOD[method], NETWORKS[network], workers)
        yield {
            "emulated_in": "laptop" if (model, network, workers) == ("ResNet-50", "1gbe", 16) else "reference",
            "model": model, "method": method, "network": network, "workers": workers, "density": found["density"],
            "selection": "published", "stretch": 10.0 if network == "1gbe" else 40.0,
            "bound_s": found["forward_s"] + found["backward_s"] + found["select_s"],
            "predicted_s": found["iteration_s"], "cpu_busy": 0.61,
        }  # fmt: skip


def _repeats(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Iterations a fixed few percent beside the prediction, each a little different."""
    offset = 0.03 * np.sin(len(cell["model"]) + 2 * len(cell["method"]) + cell["workers"])
    run = f"results/{cell['emulated_in']}/emulated/{cell['network']}/{cell['workers']}/{cell['model']}/{cell['method']}"
    for iteration in range(1, ITERATIONS + 1):
        seconds = cell["predicted_s"] * (1 + offset + 0.004 * np.cos(iteration))
        yield cell | {"iteration": iteration, "iteration_s": seconds, "run": run}


def _events(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A traced and a predicted iteration: one selection and one message, which begins early where it may."""
    found = predicted(cell["model"], OF_METHOD[cell["method"]], NETWORKS[cell["network"]], cell["workers"])
    for kind, factor in (("traced", 1.02), ("predicted", 1.0)):
        end = found["iteration_s"] * factor
        computed = found["forward_s"] + found["backward_s"]
        spans = [
            ("forward", "", 0.0, found["forward_s"]), ("backward", "all", found["forward_s"], computed),
            ("select", "all", computed, computed + found["select_s"]),
            ("exchange", "all", max(0.0, end - found["exchange_s"]), end),
        ]  # fmt: skip
        for phase, event, start, stop in spans:
            if stop > start:
                yield {name: cell[name] for name in ("emulated_in", *_WHERE, "selection")} | {
                    "kind": kind, "phase": phase, "event": event, "start": start, "end": stop,
                }  # fmt: skip

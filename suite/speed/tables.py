"""The tables of iteration times in results/<profile>/tables: predicted, where they cross, beside emulated ones."""

import json
import math
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import pandas as pd

from suite.config.costs import NetworkCosts
from suite.errors import ConfigError, SuiteError
from suite.record.atomic import replacing
from suite.speed.emulated import REFERENCE, Emulation, emulated_tables, emulations
from suite.speed.networks import link_at, read_networks, usual_latency
from suite.speed.paper import PLANS
from suite.speed.predictions import DENSE_ONE, LAGS_ADAPTIVE, TITLES, predictions
from suite.speed.published import all_published, brings_times, published_models
from suite.speed.runs import RUN_TIME_COLUMNS, run_time_rows
from suite.speed.subject import WORKERS, Subject, read_subject
from suite.speed.sweep import GRID, changes

SWEPT_BANDWIDTHS = (1.0, 2.5, 5.0, 10.0, 25.0, 100.0)  # Gb/s
SWEPT_WORKERS = (4, 8, 16, 32, 64)
SCALED_WORKERS = tuple(2**power for power in range(1, 11))
_SWEPT_PLANS = (DENSE_ONE, PLANS["dense"], PLANS["slgs"], PLANS["lags"], LAGS_ADAPTIVE)
_NETWORKS = ("1gbe", "10gbe")  # of scaling and of the cells that are emulated
_PUBLISHED_ON = "1gbe"
# Dense over LAGS-SGD where they are equal, and as the sources claim it: 30% faster; 2.86 to 8.52 times.
RATIOS = (1.0, 1.3, 2.86, 8.52)

Row = dict[str, Any]


def write_tables(results: Path) -> list[Path]:
    """Write all of them for the profile whose folder is `results`; returns the files.

    Those of the published models have no rows where the profile's replication does not bring published times. Our
    selection is left out where tables/selection.json, the object that `suite bench select --json` prints, is not there.

    Raises:
        ConfigError: the published times are not there.
        SuiteError: a file to read from is damaged.
    """
    subjects = published_subjects(read_copies(results))
    if not subjects:
        raise ConfigError("there is no replications/*/published.yaml here; run from the root of the suite's checkout")
    rows = None if results.name == REFERENCE or brings_times(results.name) else 0
    found = emulations(results)[:rows]
    tables = {
        "predicted": _table(predicted_rows(subjects), rows),
        "crossings": _table(crossing_rows(subjects), rows),
        **(emulated := emulated_tables(found)),
        "iteration_times": _table(iteration_rows(subjects, emulated["emulated"], found), rows),
        "run_times": pd.DataFrame(run_time_rows(results.name), columns=RUN_TIME_COLUMNS),
    }
    written = []
    for name, table in tables.items():
        path = results / "tables" / f"{name}.csv"
        with replacing(path) as aside:
            table.to_csv(aside, index=False, float_format="%.6g")
        written.append(path)
    return written


def _table(rows: Iterator[Row], wanted: int | None) -> pd.DataFrame:
    """All rows, or the first that are wanted; the columns also without any."""
    return pd.DataFrame(rows if wanted is None else islice(rows, wanted + 1))[:wanted]


def selection_file(results: Path) -> Path:
    """Where a profile's measurement of our selection is."""
    return results / "tables" / "selection.json"


def read_copies(results: Path) -> float | None:
    """How many copies of memory our selection takes, as measured on this machine; None where it was not."""
    path = selection_file(results)
    try:
        return float(json.loads(path.read_text())["fused_ratio_to_copy"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SuiteError(f"{path} is damaged; write it again with `suite times --measure-selection`") from error


def published_subjects(copies: float | None) -> dict[tuple[str, str], Subject]:
    """All published models with their own selection and, where it is known, with ours; by model and selection."""
    out = {}
    for name in published_models():
        out[name, "published"] = subject = read_subject(name)
        if copies is not None:
            out[name, "ours"] = subject.with_our_selection(copies)
    return out


def predicted_rows(subjects: dict[tuple[str, str], Subject]) -> Iterator[Row]:
    """predicted.csv: all plans on the named networks, and the main ones over bandwidths and numbers of workers."""
    named, alpha = read_networks(), usual_latency()
    studies: list[tuple[str, str, NetworkCosts, tuple[str, ...]]] = [
        ("times", name, network.at(WORKERS), TITLES) for name, network in named.items() if network.serves(WORKERS)
    ]
    for gigabits, workers in product(SWEPT_BANDWIDTHS, SWEPT_WORKERS):
        studies.append(("sweep", f"{gigabits:g} Gb/s", link_at(gigabits, workers, alpha), _SWEPT_PLANS))
    for name, workers in product(_NETWORKS, SCALED_WORKERS):
        studies.append(("scaling", name, named[name].at(workers), _SWEPT_PLANS))
    for study, network, costs, titles in studies:
        for (model, selection), subject in subjects.items():
            for found in predictions(subject, costs, titles):
                yield {
                    "study": study,
                    "model": model,
                    "network": network,
                    "bandwidth": round(costs.bandwidth / 1e9, 6),
                    "workers": costs.workers,
                    "selection": selection,
                } | found.row()


def crossing_rows(subjects: dict[tuple[str, str], Subject]) -> Iterator[Row]:
    """crossings.csv: the highest bandwidth at which dense takes `ratio` times as long as merged LAGS-SGD."""
    alpha = usual_latency()
    for ((model, selection), subject), against in product(subjects.items(), (DENSE_ONE, PLANS["dense"])):

        @cache
        def dense_over_lags(gigabits: float, subject: Subject = subject, against: str = against) -> float:
            dense, lags = predictions(subject, link_at(gigabits, WORKERS, alpha), (against, PLANS["lags"]))
            return dense.timeline.iteration / lags.timeline.iteration

        on_grid = [dense_over_lags(gigabits) for gigabits in GRID]
        for ratio in RATIOS:
            found = changes(lambda at, of=dense_over_lags, ratio=ratio: of(at) > ratio)
            yield {
                "model": model,
                "selection": selection,
                "workers": WORKERS,
                "plan_against": against,
                "ratio": ratio,
                "bandwidth": found[-1].bandwidth if found else math.nan,
                "highest_ratio": max(on_grid),
                "lowest_ratio": min(on_grid),
            }


def iteration_rows(
    subjects: dict[tuple[str, str], Subject], emulated: pd.DataFrame, found: list[Emulation]
) -> Iterator[Row]:
    """iteration_times.csv: published, predicted and emulated side by side, with the published selection."""
    dense_totals = {}
    for published in all_published().values():
        dense_totals |= published.dense_totals.models
    named, runs = read_networks(), {emulation.key: emulation for emulation in found}
    for (model, selection), subject in subjects.items():
        if selection != "published":
            continue
        times = subject.published.times
        totals = {"dense": dense_totals.get(model), "slgs": times.slgs.total, "lags": times.lags.total}
        for network in _NETWORKS:
            by_title = {one.title: one for one in predictions(subject, named[network].at(WORKERS), PLANS.values())}
            for method, title in PLANS.items():
                one, run = by_title[title], runs.get((model, method, network, WORKERS, selection))
                timeline = one.timeline
                yield {
                    "model": model,
                    "method": method,
                    "network": network,
                    "workers": WORKERS,
                    "published_s": totals[method] if network == _PUBLISHED_ON else None,
                    "predicted_s": timeline.iteration,
                } | _beside(
                    one.density,
                    sum(timeline.total(phase) for phase in ("forward", "backward", "select")),
                    emulated[emulated.run == run.run] if run else emulated.head(0),
                )


def _beside(density: float, bound: float, iterations: pd.DataFrame) -> Row:
    """The emulated part of a row; empty where nothing was emulated."""
    seconds, none = iterations.iteration_s.astype(float), iterations.empty
    low, middle, high = (None, None, None) if none else (seconds.min(), seconds.median(), seconds.max())
    facts = {name: None if none else iterations[name].iloc[0] for name in ("stretch", "emulated_in", "run")}
    return {
        "emulated_s": middle,
        "density": density,
        "bound_s": bound,
        "emulated_low_s": low,
        "emulated_high_s": high,
        "iterations": None if none else len(seconds),
    } | facts

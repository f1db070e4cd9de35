"""From run folders to the tidy tables that figures, claims and report are built from.

Every number here is copied or averaged from a run's files; deleting the tables loses nothing.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from suite.config.experiment import variants
from suite.config.profiles import Cell, profile_cells
from suite.config.values import read_yaml
from suite.errors import SuiteError
from suite.record.atomic import replacing
from suite.record.delta import delta_by_kind
from suite.record.run_folder import RunFolder, resolved
from suite.record.schemas import OBSERVATIONS
from suite.record.states import write_states

# A figure of one run draws at most this many iterations; longer runs are thinned evenly.
_DRAWN_ITERATIONS = 500
# What tells its rows apart in the longest table, which only holds the first seed of a method.
_DRAWN_KEYS = ("experiment", "method", "label", "seed")
_PHASES = ("compute", "select", "exchange", "apply", "measure", "other")
# Training settings in which runs of one task may differ.
_NO_TASK = {"seed", "checkpoint_every", "max_skipped", "stall_limit"}


@dataclass(frozen=True)
class FinishedRun:
    """A cell of the grid with its run folder and what is in it."""

    cell: Cell
    folder: RunFolder
    summary: dict[str, Any]
    config: dict[str, Any]

    @property
    def keys(self) -> dict[str, Any]:
        """The columns every table starts with."""
        method = self.config["method"]
        return {
            "experiment": self.cell.experiment, "title": self.cell.title, "method": self.cell.method,
            "method_name": method["name"], "label": self.summary["label"], "seed": self.cell.seed,
            "density": self.summary.get("density", method.get("density")),  # earlier versions did not write it
        }  # fmt: skip

    @property
    def tells_accuracy(self) -> bool:
        """Whether the run's losses and test metric mean anything: not on data that were made for timings."""
        return getattr(variants("dataset")[self.config["data"]["name"]], "tells_accuracy", True)

    @property
    def task(self) -> str:
        """A hash of all settings but the method's and the seed: runs of one task differ in nothing else."""
        parts = ("mode", "model", "data", "optimizer", "compute")
        task = {part: self.config[part] for part in parts if part in self.config}
        task["train"] = {name: value for name, value in self.config["train"].items() if name not in _NO_TASK}
        task["workers"] = self.config["world"]["workers"]
        return hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def ratio_cap(self) -> float | None:
        """c_u of adaptive ratios, d / k where one ratio is given to all layers; None where everything is sent."""
        method = self.config["method"]
        if method.get("adaptive"):
            return method["adaptive"]["c_u"]
        return 1 / method["density"] if "density" in method else None


def finished_runs(results: Path) -> Iterator[FinishedRun]:
    """The complete runs of the profile whose folder `results` is, in the order of its experiments file."""
    for cell in profile_cells(results.name):
        folder = RunFolder(results / "runs" / cell.folder)
        summary = folder.read_summary()
        if summary is not None:
            yield FinishedRun(cell, folder, summary, resolved(read_yaml(folder.config)))


def aggregate(results: Path) -> list[Path]:
    """Write results/<profile>/tables/*.csv: states of all cells, all else from the finished runs; returns the files.

    Raises:
        SuiteError: no run is finished, or a run's file is damaged.
    """
    written = [write_states(results)]
    runs = list(finished_runs(results))
    if not runs:
        raise SuiteError(
            f"no finished run in {results}/runs; run `snakemake --cores 2 --config profile={results.name}` first"
        )
    tables = {
        "runs": pd.DataFrame([_run_row(run) for run in runs]),
        "epochs": pd.concat([_with_keys(run, _epochs(run)) for run in runs]),
        "losses": pd.concat([_with_keys(run, _losses(run)) for run in runs]),
        "phases": pd.concat([_with_keys(run, _phases(run)) for run in runs]),
        "timeline": pd.concat([_with_keys(run, _timeline(run)) for run in runs]),
    }
    first = {cell.address for cell in _first_cells(runs)}
    parts: dict[str, list[pd.DataFrame]] = {
        "assumption": [], "delta_by_kind": [], "assumption_iterations": [], "observations": [],
    }  # fmt: skip
    for run in runs:
        parts["observations"].append(_with_keys(run, _observations(run)))
        frame = _assumption(run)  # the longest of a run's files: one is in memory at a time
        parts["assumption"].append(_with_keys(run, _by_epoch(frame)))
        parts["delta_by_kind"].append(_with_keys(run, delta_by_kind(frame)))
        if run.cell.address in first:
            parts["assumption_iterations"].append(_with_keys(run, _thinned(frame), _DRAWN_KEYS))
    tables |= {name: pd.concat(frames) for name, frames in parts.items()}
    for name, table in tables.items():
        path = results / "tables" / f"{name}.csv"
        with replacing(path) as aside:
            table.to_csv(aside, index=False)
        written.append(path)
    return written


def _run_row(run: FinishedRun) -> dict[str, Any]:
    config, summary = run.config, run.summary
    world, method = config["world"], config["method"]
    copied = ("metric", "iterations", "epochs", "seconds", "bytes_sent", "parameters", "segments", "messages",
              "skipped", "dropped", "parameters_sha256", "data_sha256")  # fmt: skip
    scores = {name: summary[name] if run.tells_accuracy else None for name in ("final", "best", "train_loss")}
    return {"run": run.cell.address, "run_id": f"{run.cell.address}@{run.cell.config_hash}"} | run.keys | {
        "task": run.task, "model": config["model"]["name"], "dataset": config["data"]["name"],
        "workers": world["workers"], "processes": world["processes"], "transport": world["transport"],
        "error_feedback": method.get("error_feedback", False), "lr_placement": method.get("lr_placement", "outside"),
        "adaptive": bool(method.get("adaptive")), "ratio_cap": run.ratio_cap,
        **{name: config.get("compute", {}).get(name) for name in ("precision", "channels_last")},
        "hidden_share": summary.get("hidden_share"),  # earlier versions did not write it
        "lr": config["optimizer"]["lr"], **_exchange(summary),
    } | scores | {name: summary[name] for name in copied}  # fmt: skip


def _exchange(summary: dict[str, Any]) -> dict[str, Any]:
    """How workers exchanged, and what a worker keeps for it; earlier versions wrote none of it and had one round an
    iteration."""
    own = summary.get("own_bytes", {})
    return {
        "rounds": summary.get("rounds", summary["iterations"]),
        "own_bytes": sum(own.values()) if "own_bytes" in summary else None, "own_parts": ", ".join(own),
        **{name: summary.get(name) for name in ("collective", "all_reduce")},
    }  # fmt: skip


def _with_keys(run: FinishedRun, frame: pd.DataFrame, names: Iterable[str] | None = None) -> pd.DataFrame:
    """The frame behind the run's keys, all of them or those named."""
    keys = {name: value for name, value in run.keys.items() if names is None or name in names}
    columns = keys | {name: frame[name] for name in frame.columns if name not in keys}
    return pd.DataFrame(columns, index=frame.index)


def _first_cells(runs: list[FinishedRun]) -> list[Cell]:
    """Of every method of every experiment the cell with the lowest seed."""
    first: dict[tuple[str, str], Cell] = {}
    for cell in sorted((run.cell for run in runs), key=lambda cell: cell.seed):
        first.setdefault((cell.experiment, cell.method), cell)
    return list(first.values())


def _read(run: FinishedRun, name: str) -> pd.DataFrame:
    path = run.folder.path / name
    try:
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's errors for a damaged file are ValueErrors
        raise _damaged(run, path) from error


def _damaged(run: FinishedRun, path: Path) -> SuiteError:
    return SuiteError(
        f"{path} is missing or damaged; delete {run.folder.summary} and run the pipeline again to rebuild it"
    )


def _epochs(run: FinishedRun) -> pd.DataFrame:
    """The run's epochs; none of them where their scores mean nothing."""
    frame = _read(run, "epochs.csv")
    for name in ("rounds", "batches"):  # earlier versions had one of each an iteration, and did not write them
        frame[name] = frame["iteration"].where(frame[name].isna(), frame[name]) if name in frame else frame["iteration"]
    return frame if run.tells_accuracy else frame.head(0)


def _losses(run: FinishedRun) -> pd.DataFrame:
    """Training loss by iteration, in a long run the mean over as many neighbours as leave few enough rows to draw.

    `iteration` is the last of them and `lr` the rate there. No rows where losses mean nothing.
    """
    frame = _read(run, "iterations.parquet")[["iteration", "epoch", "lr", "loss"]]
    if not run.tells_accuracy:
        return frame.head(0)
    blocks = np.arange(len(frame)) // (-(-len(frame) // _DRAWN_ITERATIONS) or 1)
    ends = {"iteration": "last", "epoch": "last", "lr": "last", "loss": "mean"}
    return frame.groupby(blocks).agg(ends)


def _phases(run: FinishedRun) -> pd.DataFrame:
    world = run.config["world"]
    seconds = [run.summary["median_seconds"][phase] for phase in _PHASES]
    return pd.DataFrame({"phase": _PHASES, "median_s": seconds}).assign(
        **{name: world[name] for name in ("workers", "processes", "transport")}
    )


def _timeline(run: FinishedRun) -> pd.DataFrame:
    """Events of the traced iteration of every rank and those that costs had predicted for one, by `kind`.

    In seconds from the iteration's start; empty where a single process exchanges nothing.
    """
    events: list[dict[str, Any]] = []
    if run.config["world"]["processes"] > 1 and run.folder.timeline.exists():
        try:
            found = json.loads(run.folder.timeline.read_text())
            events = [{"kind": "traced"} | event for event in found["events"]]
            events += [{"kind": "predicted"} | event for event in found.get("predicted", ())]
        except (json.JSONDecodeError, KeyError) as error:
            raise _damaged(run, run.folder.timeline) from error
    frame = pd.DataFrame(events, columns=["kind", "rank", "phase", "label", "start", "end"])
    return frame.rename(columns={"label": "event"})  # the key `label` is the method's


def _assumption(run: FinishedRun) -> pd.DataFrame:
    """The run's assumption rows with the segment's position in the model and its epoch."""
    frame = _read(run, "assumption.parquet")
    frame["position"] = frame.groupby("iteration").cumcount()
    frame["epoch"] = (frame["iteration"] - 1) // run.summary["iterations_an_epoch"] + 1
    return frame


def _by_epoch(frame: pd.DataFrame) -> pd.DataFrame:
    grouped = frame.assign(above=frame["delta"] > 1).groupby(["epoch", "position", "segment", "d", "k"], as_index=False)
    return grouped.agg(
        points=("delta", "count"), delta_mean=("delta", "mean"), delta_max=("delta", "max"), above_one=("above", "sum"),
        delta_random_mean=("delta_random", "mean"), norm_ratio_mean=("norm_ratio", "mean"),
    )  # fmt: skip


def _observations(run: FinishedRun) -> pd.DataFrame:
    """What the method observed, by segment and quantity: mean, largest, and how many of the values are above 0."""
    observed = (run.folder.path / "observations.parquet").exists()
    frame = _read(run, "observations.parquet") if observed else OBSERVATIONS.empty_table().to_pandas()
    return frame.assign(above=frame["value"] > 0).groupby(["segment", "quantity"], as_index=False).agg(
        points=("value", "count"), mean=("value", "mean"), max=("value", "max"), above_0=("above", "sum"),
    )  # fmt: skip


def _thinned(frame: pd.DataFrame) -> pd.DataFrame:
    iterations = frame["iteration"].unique()
    step = -(-len(iterations) // _DRAWN_ITERATIONS) or 1
    return frame[frame["iteration"].isin(iterations[::step])].drop(columns="epoch")

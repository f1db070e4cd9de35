"""How the pipeline scales: a profile of hundreds of finished runs that nobody trained, and each step timed on it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from suite.config import validate_config
from suite.config.profiles import Cell, profile_cells
from suite.errors import SuiteError
from suite.record import RunFolder
from suite.record.atomic import write_json
from suite.record.environment import describe_machine
from suite.record.schemas import ASSUMPTION, EPOCHS, ITERATIONS

PROFILE = "scale"
_METHODS = ("dense", "slgs", "lags", "lags-rare")
_SEEDS = 5
_RANKS = 16
_ITERATIONS, _AN_EPOCH, _SEGMENTS = 320, 32, 62  # as long as a cell of the laptop profile, with ResNet-20's tensors
_EVENTS_A_RANK = 60
_PARTS = ("Snakefile", "rules", "plots", "suite", "environment.yml", "pyproject.toml")


def bench_pipeline(runs: int, checkout: Path) -> dict[str, Any]:
    """Time every step on `runs` made-up finished runs of 16 ranks each, in a folder that is removed afterwards.

    Args:
        runs: how many; a multiple of 20 is a whole grid of 4 methods and 5 seeds.
        checkout: whose Snakefile, rules and figures are used.

    Returns:
        Plain values by step, each a process of its own with its imports: seconds, those a processor was busy
        with it, and peak megabytes.

    Raises:
        SuiteError: a step failed.
    """
    with tempfile.TemporaryDirectory(prefix="suite-scale-") as folder:
        root = Path(folder)
        for part in _PARTS:
            (root / part).symlink_to((checkout / part).resolve())
        shutil.copytree(checkout / "replications", root / "replications")
        write_profile(root, runs)
        snakemake = ["snakemake", "-n", "--quiet", "--cores", "1", "--config", f"profile={PROFILE}"]
        steps = {
            "DAG, nothing done": snakemake,
            "states": ["suite", "states", PROFILE],
            "aggregate": ["suite", "aggregate", PROFILE],
            "DAG, all trained": snakemake,
            "MLflow import": ["suite", "track", PROFILE],
            "MLflow import again": ["suite", "track", PROFILE],
            "iteration times": ["suite", "times", PROFILE],
            "figures": ["plots", "--results", f"results/{PROFILE}"],
            "claims": ["suite", "claims", PROFILE],
            "report": ["suite", "report", PROFILE],
        }
        seconds, busy, megabytes = {}, {}, {}
        for name, words in steps.items():
            if name == "states":
                began = time.monotonic()
                write_runs(root)
                made = time.monotonic() - began
            seconds[name], busy[name], megabytes[name] = _timed(words, root)
        results = root / "results" / PROFILE
        bytes_of = {name: _size(results / name) for name in ("runs", "tables", "mlflow.db", "report.html")}
    return {
        "benchmark": "pipeline", "runs": runs, "ranks": _RANKS, "seconds": seconds, "cpu_seconds": busy,
        "peak_megabytes": megabytes, "bytes": bytes_of, "seconds_to_make_runs": made,
    }  # fmt: skip


def write_profile(root: Path, runs: int) -> list[Cell]:
    """Add a profile of `runs` cells to a replication below `root`, whose claims come with it; returns the cells."""
    base = {
        "model": {"name": "resnet20"}, "data": {"name": "digits"},
        "world": {"workers": _RANKS, "processes": _RANKS, "transport": "torch"}, "train": {"epochs": 10},
    }  # fmt: skip
    methods = {
        "dense": {"method": {"name": "dense"}},
        "slgs": {"method": {"name": "slgs", "density": 0.01}},
        "lags": {"method": {"name": "lags", "density": 0.01}},
        "lags-rare": {"method": {"name": "lags", "density": 0.001}},
    }
    experiments, left = {}, runs
    while left > 0:
        seeds = {name: list(range(min(_SEEDS, max(0, left - i * _SEEDS)))) for i, name in enumerate(_METHODS)}
        seeds = {name: of for name, of in seeds.items() if of}
        left -= sum(map(len, seeds.values()))
        number = len(experiments)
        # An experiment of its own is another task.
        over = {"train": {"epochs": 10, "batch_size": 1 + number % 8}, "optimizer": {"lr": 0.01 * (1 + number)}}
        experiments[f"e{number:03}"] = {
            "title": f"Experiment {number}", "base": base | over, "methods": {name: methods[name] for name in seeds},
            "seeds": seeds,
        }  # fmt: skip
    path = min(root.glob("replications/*/experiments.yaml"))
    profiles = yaml.safe_load(path.read_text())["profiles"] | {PROFILE: experiments}
    path.write_text(yaml.safe_dump({"profiles": profiles}))
    return _cells(root)


def _cells(root: Path) -> list[Cell]:
    here = Path.cwd()
    os.chdir(root)  # replications are looked up from the root of a checkout
    try:
        return profile_cells(PROFILE)
    finally:
        os.chdir(here)


def write_runs(root: Path) -> None:
    """Write a complete run folder for every cell of the profile below `root`; numbers are seeded noise."""
    rng = np.random.default_rng(0)
    iterations, assumption, epochs = _tables(rng)
    timeline = _timeline(rng)
    environment = describe_machine() | {"device": "cpu", "threads": 1, "transport": "torch"}
    for cell in _cells(root):
        folder = RunFolder(root / "results" / PROFILE / "runs" / cell.folder)
        folder.path.mkdir(parents=True)
        config = validate_config(cell.config)
        folder.config.write_text(yaml.safe_dump(config.to_dict(), sort_keys=False))
        folder.environment.write_text(json.dumps(environment))
        folder.timeline.write_text(json.dumps(timeline))
        pq.write_table(iterations, folder.path / "iterations.parquet")
        sparse = config.method.name == "lags"
        pq.write_table(assumption if sparse else assumption.slice(0, 0), folder.path / "assumption.parquet")
        noisy = epochs.assign(value=(epochs["value"] + rng.normal(0, 0.01, len(epochs))).clip(0, 1))
        noisy.to_csv(folder.path / "epochs.csv", index=False)
        write_json(folder.summary, _summary(config.method.name, noisy, f"{rng.integers(2**62):064x}"))


def _tables(rng: np.random.Generator) -> tuple[pa.Table, pa.Table, pd.DataFrame]:
    """iterations, assumption and epochs of one run."""
    steps = np.arange(1, _ITERATIONS + 1)
    stamps = 1.8e9 + steps * 0.1
    iterations = pd.DataFrame({
        "iteration": steps, "epoch": (steps - 1) // _AN_EPOCH + 1, "lr": 0.1, "density": 0.01,
        "loss": 2.3 * np.exp(-steps / 100) + rng.random(_ITERATIONS) * 0.1, "skipped": False,
        "bytes_sent": steps * 1e5, "timestamp": stamps,
    })  # fmt: skip
    for name in ITERATIONS.names[len(iterations.columns) :]:
        iterations[name] = rng.random(_ITERATIONS) * 0.01
    rows = _ITERATIONS * _SEGMENTS
    assumption = pd.DataFrame({
        "iteration": np.repeat(steps, _SEGMENTS),
        "segment": [f"layer{i}.conv.weight" for i in range(_SEGMENTS)] * _ITERATIONS,
        "d": 2304, "k": 23, "delta": rng.random(rows), "delta_random": rng.random(rows), "norm_ratio": rng.random(rows),
    })  # fmt: skip
    last = steps[_AN_EPOCH - 1 :: _AN_EPOCH]
    epochs = pd.DataFrame({
        "epoch": last // _AN_EPOCH, "iteration": last, "lr": 0.1, "train_loss": 2.3 * np.exp(-last / 100),
        "test_loss": 2.4 * np.exp(-last / 100), "metric": "test_accuracy", "value": 1 - np.exp(-last / 100),
        "bytes_sent": last * 1e5, "seconds": last * 0.1, "timestamp": 1.8e9 + last * 0.1, "rounds": last,
        "batches": last,
    })[EPOCHS.names]  # fmt: skip
    return (
        pa.Table.from_pandas(iterations, ITERATIONS, preserve_index=False),
        pa.Table.from_pandas(assumption, ASSUMPTION, preserve_index=False),
        epochs,
    )


def _timeline(rng: np.random.Generator) -> dict[str, Any]:
    """A traced iteration of 16 ranks."""
    phases = ("forward", "backward", "select", "start", "exchange", "apply")
    starts = np.sort(rng.random((_RANKS, _EVENTS_A_RANK)), axis=1)
    events = [
        {"rank": rank, "phase": phases[i % len(phases)], "label": f"layer{i}", "start": start, "end": start + 0.01}
        for rank, of in enumerate(starts.tolist())
        for i, start in enumerate(of)
    ]
    return {"iteration": 5, "unit": "seconds", "hidden_share": 0.5, "events": events}


def _summary(method: str, epochs: pd.DataFrame, sha: str) -> dict[str, Any]:
    phases = ("compute", "select", "exchange", "apply", "measure", "other", "iteration")
    last = epochs.iloc[-1]
    return {
        "parameters_sha256": sha, "data_sha256": "0" * 64, "iterations": _ITERATIONS, "iterations_an_epoch": _AN_EPOCH,
        "parameters": 272_474, "skipped": 0, "segments": _SEGMENTS, "messages": 8, "dropped": 0, "resumed_at": [],
        "seconds": 32.0, "higher_is_better": True, "hidden_share": 0.5, "density": None if method == "dense" else 0.01,
        "complete": True, "method": method, "label": f"{method.upper()}-SGD", "metric": "test_accuracy",
        "final": float(last["value"]), "best": float(epochs["value"].max()), "train_loss": float(last["train_loss"]),
        "test_loss": float(last["test_loss"]), "epochs": int(last["epoch"]), "bytes_sent": float(last["bytes_sent"]),
        "batchnorm": "average", "median_seconds": dict.fromkeys(phases, 0.01),
    }  # fmt: skip


def _timed(words: list[str], root: Path) -> tuple[float, float, float]:
    """Run `python -m WORDS` in `root`; its seconds, those on a processor, and the most megabytes it held at a time."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PYTHONPATH": str(root)}
        process = subprocess.Popen([sys.executable, "-m", *words], cwd=root, stdout=output, stderr=output, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # waited for, without Popen's knowledge
        seconds = time.monotonic() - began
        if process.returncode:
            output.seek(0)
            raise SuiteError(f"`{' '.join(words)}` failed: {output.read()[-2000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())

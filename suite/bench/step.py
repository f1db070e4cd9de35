"""Whole training iterations: short runs of `suite train`, method against method, in turn."""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from suite.config import ExperimentConfig
from suite.errors import SuiteError
from suite.methods import METHODS
from suite.record.atomic import write_text

SKIPPED = 5  # iterations at the start of a run that pay for allocation and, the fifth, for tracing
# SLGS has one message, of the whole gradient: nothing of it could overlap.
CASES = {
    "dense": ("dense", False),
    "dense overlap": ("dense", True),
    "slgs": ("slgs", False),
    "lags": ("lags", False),
    "lags overlap": ("lags", True),
}


def bench_step(config: ExperimentConfig, iterations: int, rounds: int) -> dict[str, Any]:
    """Time iterations of dense, SLGS and LAGS, with and without overlap, on one configuration's model, data and world.

    Each round trains every case anew for a few iterations, as a user would, without measuring the assumption. The
    medians are over all rounds' iterations but each run's first five; tests and checkpoints do not count.

    Args:
        config: model, data and world; settings of its method that another method knows are that method's too.
        iterations: that count, of each run.
        rounds: over all cases.

    Returns:
        median milliseconds by case, of the whole and by phase, and how many times as fast as the faster dense each is.
    """
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory(prefix="suite-bench-") as folder:
        for number in range(rounds):
            for name, case in CASES.items():
                rows[name] += train_rows(config, iterations, *case, Path(folder) / f"{number}-{name.replace(' ', '-')}")
    phases = [column for column in rows["dense"][0] if column.endswith("_s")]
    middle = {
        name: {phase: 1e3 * statistics.median(row[phase] for row in found) for phase in phases}
        for name, found in rows.items()
    }
    milliseconds = {name: found["iteration_s"] for name, found in middle.items()}
    dense = min(milliseconds["dense"], milliseconds["dense overlap"])
    return {
        "benchmark": "step",
        "model": config.model.name,
        "data": config.data.name,
        "workers": config.world.workers,
        "processes": config.world.processes,
        "transport": config.world.transport,
        "iterations": iterations * rounds,
        "milliseconds": milliseconds,
        "ratio_to_dense": {name: dense / value for name, value in milliseconds.items()},
        "phases_milliseconds": middle,
    }


def train_rows(
    config: ExperimentConfig, iterations: int, method: str, overlap: bool, folder: Path
) -> list[dict[str, float]]:
    """Rows of `iterations` recorded iterations of a run of `suite train`, those that settle it left out.

    Args:
        config: settings of its method that `method` knows are that method's too; the assumption is not measured.
        iterations: that count.
        method: its name.
        overlap: whether messages go out during back-propagation.
        folder: to train in.
    """
    path, out = folder / "config.yaml", folder / "run"
    write_text(path, yaml.safe_dump(_case(config, iterations, method, overlap)))
    command = [sys.executable, "-m", "suite", "train", str(path), "--out", str(out)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SuiteError(f"a run of the benchmark failed: {done.stderr.strip() or done.returncode}")
    return pq.read_table(out / "iterations.parquet").to_pylist()[SKIPPED:]


def _case(config: ExperimentConfig, iterations: int, method: str, overlap: bool) -> dict[str, Any]:
    """Plain values of a run with another method."""
    values = config.to_dict()
    known = METHODS[method].Settings.model_fields
    values["method"] = {key: value for key, value in values["method"].items() if key in known} | {"name": method}
    if "momentum" in known:  # of its own, beside which it allows no other
        values["optimizer"]["momentum"] = 0.0
    values["world"]["overlap"] = overlap
    values["assumption"] = {"every": 0}
    # An epoch has at least one iteration.
    values["train"] |= {key: iterations + SKIPPED for key in ("epochs", "max_iterations", "checkpoint_every")}
    return values

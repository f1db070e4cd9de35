"""What a run ran on: enough to tell why two runs with the same configuration could differ."""

import importlib.metadata
import os
import platform
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.config import ExperimentConfig

_PACKAGES = (
    "torch",
    "torchvision",
    "horovod",
    "numpy",
    "scikit-learn",
    "pyarrow",
    "mlflow-skinny",
    "snakemake",
    "lags-suite",
)


def describe_environment(config: ExperimentConfig, threads: int, device: str) -> dict[str, Any]:
    """Versions, source commit, machine, transport and seeds; plain values."""
    return describe_machine() | {
        "affinity": sorted(os.sched_getaffinity(0)),
        "threads": threads,
        "device": device,
        "transport": config.world.transport,
        "controller": config.world.controller if config.world.transport == "horovod" else None,
        "processes": config.world.processes,
        "workers": config.world.workers,
        "seeds": {"train": config.train.seed, "split": getattr(config.data, "split_seed", None)},
    }


def describe_machine() -> dict[str, Any]:
    """Versions, source commit and machine; plain values."""
    return {
        "versions": {"python": platform.python_version()} | {name: installed_version(name) for name in _PACKAGES},
        "commit": source_commit(),
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
    }


def installed_version(package: str) -> str | None:
    """The version of an installed distribution, None without it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def source_commit() -> str | None:
    """The commit of the checkout the suite runs from, with "+changes" when it is not clean; None outside of one."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        git = ["git", "-C", str(root)]
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+changes" if status.strip() else "")


def cpu_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())

"""What a run ran on: enough to tell why two runs with the same configuration could differ."""

import importlib.metadata
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.config import ExperimentConfig
from suite.record.atomic import write_json

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


def record_environment(path: Path, config: ExperimentConfig, ranks: list[dict[str, Any]]) -> None:
    """Write what a run runs on to `path`, and say on stderr where it is not what was asked for."""
    found = describe_machine() | {
        "host": ranks[0]["node"],
        "threads": ranks[0]["threads"],
        "device": ranks[0]["device"],
        "transport": config.world.transport,
        "controller": config.world.controller if config.world.transport == "horovod" else None,
        "processes": config.world.processes,
        "workers": config.world.workers,
        "seeds": {"train": config.train.seed, "split": getattr(config.data, "split_seed", None)},
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
        "ranks": ranks,
        "warnings": placement_warnings(config.world.threads, ranks),
    }
    write_json(path, found)
    for warning in found["warnings"]:
        print(f"suite: warning: {warning}", file=sys.stderr, flush=True)


def describe_rank(threads: int, device: str) -> dict[str, Any]:
    """Where this process is and what it may use; `affinity` are the cores it may run on, "0-3,8" say."""
    node = os.environ.get("SLURMD_NODENAME", socket.gethostname())
    interface = os.environ.get("HOROVOD_GLOO_IFACE") or os.environ.get("GLOO_SOCKET_IFNAME")
    return {
        "node": node,
        "affinity": spans(os.sched_getaffinity(0)),
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "device": device,
        "interface": interface,
    }


def placement_warnings(threads: int, ranks: list[dict[str, Any]]) -> list[str]:
    """A sentence for every rank that has not got the threads or cores that were asked for."""
    found = []
    for number, rank in enumerate(ranks):
        if rank["threads"] != threads:
            found.append(f"rank {number} on {rank['node']} computes with {rank['threads']} threads, not {threads}")
        if rank["cores"] < threads:
            found.append(
                f"rank {number} on {rank['node']} may use {rank['cores']} core{'s' * (rank['cores'] > 1)} "
                f"({rank['affinity']}) for {threads} threads; ask for --cpus-per-task={threads}"
            )
    return found


def spans(numbers: Iterable[int]) -> str:
    """Whole numbers in short: {0, 1, 2, 5} is "0-2,5"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


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

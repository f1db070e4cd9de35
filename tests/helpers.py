"""What several test files share."""

import os
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from suite.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
PIPELINE = ("suite", "plots", "rules", "replications", "Snakefile", "environment.yml")


def require(tool: str, available: bool, reason: str) -> None:
    """Skips the test where the tool is missing, or fails it where SUITE_REQUIRE promises the tool, as .ci/run does."""
    if available:
        return
    if tool in os.environ.get("SUITE_REQUIRE", "").split():
        pytest.fail(reason)
    pytest.skip(reason)


def tiny_settings() -> dict[str, Any]:
    """The plain values behind the fixture `tiny`."""
    return {
        "model": {"name": "lstm", "embedding": 8, "hidden": 12, "layers": 2, "dropout": 0.2},
        "data": {"name": "pydoc", "vocabulary": 50, "sequence_length": 5, "max_train_tokens": 1000},
        "method": {"name": "lags", "density": 0.05},
        "optimizer": {"lr": 1.0, "momentum": 0.9, "weight_decay": 1e-4, "clip_norm": 1.0},
        "world": {"workers": 4},
        "train": {"epochs": 2, "batch_size": 2, "checkpoint_every": 7},
    }


def step_beside(method: str) -> dict[str, float]:
    """Settings of the optimiser that a method asks for: none, or no momentum beside its own."""
    known = METHODS[method].Settings.model_fields if method in METHODS else {}
    return {"momentum": 0.0} if "momentum" in known else {}


def copy_pipeline(folder: Path, *more: str) -> Path:
    """Copy what the pipeline needs, and `more` parts of the checkout, into `folder`, which is returned."""
    for part in (*PIPELINE, *more):
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / part)
    return folder


def ranks_of(out: Path) -> list[psutil.Process]:
    """Living ranks of the run in `out`, in rank order, and the mpirun that started them."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        words = process.info["cmdline"] or []
        if "rank" in words and str(out) in words:
            found.append((int((process.info["environ"] or {}).get("SUITE_RANK", 0)), process))
    return [process for _, process in sorted(found, key=lambda pair: pair[0])]

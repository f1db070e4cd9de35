"""What several test files share."""

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


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

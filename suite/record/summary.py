"""summary.json: what a finished run amounts to. Written last; its presence means the run is complete."""

from typing import Any

import pandas as pd

from suite.config import ExperimentConfig
from suite.record.run_folder import RunFolder


def summarise(config: ExperimentConfig, folder: RunFolder, label: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The run's facts with what its tables say: final and best metric, losses, bytes, median phase times."""
    epochs = pd.read_csv(folder.path / "epochs.csv")
    iterations = pd.read_parquet(folder.path / "iterations.parquet")
    best = epochs["value"].max() if facts["higher_is_better"] else epochs["value"].min()
    last = epochs.iloc[-1]
    phases = iterations.filter(regex="_s$").median()
    return facts | {
        "complete": True,
        "method": config.method.name,
        "label": label,
        "metric": last["metric"],
        "final": float(last["value"]),
        "best": float(best),
        "train_loss": float(last["train_loss"]),
        "test_loss": float(last["test_loss"]),
        "epochs": int(last["epoch"]),
        "bytes_sent": float(last["bytes_sent"]),
        "batchnorm": config.train.batchnorm,
        "median_seconds": {name.removesuffix("_s"): float(value) for name, value in phases.items()},
    }

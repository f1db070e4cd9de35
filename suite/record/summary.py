"""summary.json: what a finished run amounts to. Written last; its presence means the run is complete."""

from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from suite.config import ExperimentConfig
from suite.record.recorder import Recorder
from suite.record.run_folder import RunFolder

# Iterations that say nothing about the later ones: they pay for allocation and lazy set-up, and some measure costs.
_SETTLING = 3


def summarise(
    config: ExperimentConfig, folder: RunFolder, recorder: Recorder, label: str, facts: dict[str, Any]
) -> dict[str, Any]:
    """The run's facts with what its tables say: final and best metric, losses, bytes, median phase times.

    The medians leave the first iterations out, where there are others.
    """
    epochs = recorder.read("epochs").to_pylist()
    iterations = pq.read_table(folder.path / "iterations.parquet")
    last, best = epochs[-1], max if facts["higher_is_better"] else min
    phases = [name for name in iterations.column_names if name.endswith("_s")]
    settled = iterations.slice(min(_SETTLING, iterations.num_rows - 1))
    return facts | {
        "complete": True,
        "method": config.method.name,
        "label": label,
        "metric": last["metric"],
        "final": last["value"],
        "best": best(row["value"] for row in epochs),
        "train_loss": last["train_loss"],
        "test_loss": last["test_loss"],
        "epochs": last["epoch"],
        "bytes_sent": last["bytes_sent"],
        "batchnorm": config.train.batchnorm,
        "median_seconds": {name.removesuffix("_s"): pc.quantile(settled[name], 0.5)[0].as_py() for name in phases},
    }

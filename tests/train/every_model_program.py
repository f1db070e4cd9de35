"""What one rank does: an iteration of every model under every method in both precisions; rank 0 writes hashes."""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import step_beside  # noqa: E402
from suite.config import validate_config  # noqa: E402
from suite.config.experiment import variants  # noqa: E402
from suite.data import load_dataset  # noqa: E402
from suite.methods import METHODS  # noqa: E402
from suite.methods.local import LocalMethod  # noqa: E402
from suite.record import RunFolder  # noqa: E402
from suite.train.loop import Trainer  # noqa: E402
from suite.train.memory import keep_freed_memory  # noqa: E402
from suite.world import open_world  # noqa: E402
from suite.world.ranks import end_with_launcher  # noqa: E402

# As small as each model allows; two images a worker, because BatchNorm over one value has no deviation.
SMALL = {"vgg16": {"width": 8}, "lstm": {"embedding": 8, "hidden": 12, "dropout": 0.2}, "mlp": {"widths": [8, 4]}}
DATA = {
    "text": {"name": "pydoc", "vocabulary": 50, "sequence_length": 5, "max_train_tokens": 400},
    "vectors": {"name": "teacher", "features": 6, "samples": 8},
    "images": {"name": "synthetic", "samples": 8, "channels": 3},
    "labelled vectors": {"name": "labelled", "samples": 8, "features": 6},
    "grouped vectors": {"name": "grouped", "groups": 2, "samples": 8, "features": 6},
    "saddles": {"name": "quadratics", "x": 4, "y": 3},
}


CORE = ("dense", "slgs", "lags")
SMALL_MODELS = ("lstm", "mlp", "resnet20")  # on which all other methods that exchange gradients take their turn


def methods_for(model: str) -> list[str]:
    """Names of the methods that a model is trained with."""
    if model == "robust_linear":
        return ["dense", "lags"]  # the largest entry of all is a group's weight, the same in both precisions
    exchanging = [name for name, method in METHODS.items() if not issubclass(method, LocalMethod)]
    return exchanging if model in SMALL_MODELS else list(CORE)


def method_settings(name: str) -> dict[str, Any]:
    """At the default density a small model's random choices are often empty."""
    has_density = "density" in METHODS[name].Settings.model_fields and name not in CORE
    return {"name": name} | ({"density": 0.05} if has_density else {})


def cases(world: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and settings; the same in every transport."""
    for name, settings in variants("model").items():
        data = DATA[settings.kind]
        if settings.kind == "images":
            data = data | {"image_size": getattr(settings, "smallest_image", 32)}
        for precision in ("float32", "bfloat16"):
            for method in methods_for(name):
                yield (
                    f"{name}, {method}, {precision}",
                    {
                        "model": {"name": name} | SMALL.get(name, {}),
                        "data": data,
                        "method": method_settings(method),
                        "optimizer": {"lr": 0.01} | step_beside(method),
                        "world": {"workers": 2, "deterministic": True} | world,
                        # Channels last: without it, bfloat16 takes twice as long on processors that do not multiply it.
                        "compute": {"precision": precision, "channels_last": precision == "bfloat16"},
                        "train": {"max_iterations": 1, "batch_size": 2},
                        "assumption": {"every": 0},
                    },
                )


def main(world: dict[str, Any], out: Path) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    found, joined = {}, None
    for name, values in cases(world):
        config = validate_config(values)
        joined = joined or open_world(config.world)
        with tempfile.TemporaryDirectory() as folder:
            run = Trainer(config, RunFolder(Path(folder)), joined, load_dataset(config))
            before = run.flat.vector.clone()
            # One iteration is too few for BatchNorm's statistics: what a deep network would be tested with overflows.
            run._evaluate = lambda epoch, progress: None
            run._save, run._finish = (lambda: None), (lambda: None)
            run.run()
            step = run.flat.vector - before
        found[name] = {
            "parameters": hashlib.sha256(run.flat.vector.numpy().tobytes()).hexdigest(),
            "changed": int(step.count_nonzero()),
            "finite": bool(torch.isfinite(step).all()) and run.skipped == 0,
            "entries": run.exchange.plan.entries,
            "sparse": run.exchange.plan.is_sparse,
        }
    if joined.rank == 0:
        out.write_text(json.dumps(found))
    joined.transport.close()


if __name__ == "__main__":
    end_with_launcher()
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))

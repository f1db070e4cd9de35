"""What one rank of the battery does: a few iterations of every method, on LSTM and ResNet; rank 0 writes hashes."""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import step_beside, tiny_settings  # noqa: E402
from suite.config import validate_config  # noqa: E402
from suite.data import load_dataset  # noqa: E402
from suite.methods import METHODS  # noqa: E402
from suite.record import RunFolder  # noqa: E402
from suite.train.loop import Trainer  # noqa: E402
from suite.world import open_world  # noqa: E402
from suite.world.ranks import end_with_launcher  # noqa: E402

IMAGES = {"model": {"name": "resnet20"}, "data": {"name": "digits"}}


def settings(world: dict) -> dict[str, dict]:
    """Every method on text, and the sparse layer-wise one on images with BatchNorm, by name."""
    step = tiny_settings()["optimizer"]
    cases = {name: {"method": {"name": name}, "optimizer": step | step_beside(name)} for name in METHODS}
    cases["lags on images"] = {"method": {"name": "lags", "density": 0.01}, **IMAGES}
    cases["lags, a message a layer"] = {"method": {"name": "lags", "messages": "layer"}}
    cases["lags, one message"] = {"method": {"name": "lags", "messages": "one"}}
    cases["lags, no overlap"] = {"method": {"name": "lags"}, "world": {"overlap": False}}
    # How many bytes these take depends on how entries are spread over messages.
    cases["lags, compact"] = {"method": {"name": "lags", "messages": "one", "wire": {"indices": "compact"}}}
    cases["lags, bfloat16"] = {"method": {"name": "lags", "messages": "one", "wire": {"values": "bfloat16"}}}
    cases["wangni, hybrid"] = {"method": {"name": "wangni", "density": 0.05, "coding": "hybrid"}}
    cases["gtopk, exact"] = {"method": {"name": "gtopk", "density": 0.05, "repair": "exact"}}
    cases["gtopk, owners"] = {"method": {"name": "gtopk", "density": 0.05, "repair": "owners"}}
    cases["mem_sgd, random"] = {"method": {"name": "mem_sgd", "density": 0.05, "selection": "random"}}
    cases["power_sgd on images"] = {"method": {"name": "power_sgd"}, **IMAGES}
    cases["acp_sgd, a message a layer"] = {"method": {"name": "acp_sgd", "messages": "layer"}}
    cases["dense, a message a layer"] = {"method": {"name": "dense", "messages": "layer"}}
    # Messages are merged by costs that the first three iterations measure: the last two run merged.
    train = {"epochs": 1, "max_iterations": 5, "batch_size": 2, "checkpoint_every": 100}
    world = {"workers": 16, "deterministic": True} | world
    return {
        name: tiny_settings() | {"train": train} | case | {"world": world | case.get("world", {})}
        for name, case in cases.items()
    }


def main(world: dict, out: Path, *cases: str) -> None:
    """Run these cases, or all."""
    torch.set_num_threads(1)
    hashes, joined = {}, None
    for name, values in settings(world).items():
        if cases and name not in cases:
            continue
        config = validate_config(values)
        joined = joined or open_world(config.world)
        joined.bytes_sent = 0.0
        with tempfile.TemporaryDirectory() as folder:
            run = Trainer(config, RunFolder(Path(folder)), joined, load_dataset(config))
            run.folder.checkpoint.mkdir(parents=True)
            run._save, run._finish = (lambda: None), (lambda: None)
            run.run()
        rows, seen = run.recorder.rows["assumption"], run.recorder.rows["observations"]
        hashes[name] = {
            "parameters": hashlib.sha256(run.flat.vector.numpy().tobytes()).hexdigest(),
            "bytes": joined.bytes_sent,
            "assumption": [round(row["delta"], 4) for row in rows if row["delta"] is not None],
            "observations": [[row["quantity"], round(row["value"], 4)] for row in seen],
        }
    if joined.rank == 0:
        out.write_text(json.dumps(hashes))
    joined.transport.close()


if __name__ == "__main__":
    end_with_launcher()
    main(json.loads(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])

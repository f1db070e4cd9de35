"""What one rank of the local-update tests does: sums in groups, and a few iterations; rank 0 writes hashes."""

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from helpers import tiny_settings  # noqa: E402
from suite.config import validate_config  # noqa: E402
from suite.data import load_dataset  # noqa: E402
from suite.record import RunFolder  # noqa: E402
from suite.train.loop import Trainer  # noqa: E402
from suite.world import World, open_world  # noqa: E402
from suite.world.ranks import end_with_launcher  # noqa: E402

WORKERS = 12  # on 2 processes groups of 4 lie across a border that others share, on 4 processes groups of 6 do

SADDLES = {"model": {"name": "saddle"}, "data": {"name": "quadratics", "heterogeneity": 0.5}}
CASES: dict[str, dict[str, Any]] = {
    "hier_avg, 3": {"method": {"name": "hier_avg", "k1": 1, "k2": 2, "group": 3}},
    "hier_avg, 4": {"method": {"name": "hier_avg", "k1": 1, "k2": 2, "group": 4, "average_momentum": True}},
    "hier_avg, 6": {"method": {"name": "hier_avg", "k1": 1, "k2": 2, "group": 6}},
    "local_adaalter": {"method": {"name": "local_adaalter", "period": 2, "warmup_steps": 1}},
    "local_sgda": {"method": {"name": "local_sgda", "tau": 2, "snapshot_every": 2}, **SADDLES},
    "adaptive_batch": {"method": {"name": "adaptive_batch", "period": 2, "eta": 2.0}},
}


def sums(world: World) -> dict[str, str]:
    """Hashes of every worker's sum in groups of every size."""
    own = [torch.randn(50, generator=torch.Generator().manual_seed(worker)) for worker in world.local]
    kept = [vector.clone() for vector in own]
    out = {}
    for group in (1, 2, 3, 4, 6, 12):
        found = world.all_reduce_groups(own, group, f"groups.{group}").wait()
        assert all(map(torch.equal, own, kept))
        out[f"groups of {group}"] = sha(torch.cat(world.gather_workers(found)))
    return out


def sha(vector: torch.Tensor) -> str:
    return hashlib.sha256(vector.numpy().tobytes()).hexdigest()


def main(world: dict, out: Path) -> None:
    torch.set_num_threads(1)
    values = {"workers": WORKERS, "deterministic": True} | world
    hashes, joined = {}, None
    for name, case in CASES.items():
        train = {"max_iterations": 5, "batch_size": 1, "checkpoint_every": 100}
        config = validate_config(tiny_settings() | case | {"world": values, "train": train})
        if joined is None:
            joined = open_world(config.world, groups=(6,))
            hashes |= sums(joined)
        joined.bytes_sent = 0.0
        with tempfile.TemporaryDirectory() as folder:
            run = Trainer(config, RunFolder(Path(folder)), joined, load_dataset(config))
            run._save, run._finish = (lambda: None), (lambda: None)
            run.run()
        everywhere = joined.transport.gather_objects(sha(run.flat.vector))
        assert len(set(everywhere)) == 1, name
        hashes[name] = [everywhere[0], joined.bytes_sent, run.taken]
    if joined.rank == 0:
        out.write_text(json.dumps(hashes))
    joined.transport.close()


if __name__ == "__main__":
    end_with_launcher()
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))

"""A training script as a user of Horovod would write it: own loop, torch's optimiser, `suite.DistributedOptimizer`.

Reads the suite's configuration only for data, model and numbers; rank 0 writes the hash of the final parameters.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn import functional as F

import suite
from suite.config import load_config
from suite.data import load_dataset
from suite.models import build_model

config = load_config(sys.argv[1])
torch.set_num_threads(config.world.threads)
if config.world.transport == "horovod":
    import horovod.torch as hvd

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
else:
    rank, size = int(os.environ["SUITE_RANK"]), config.world.processes
    dist.init_process_group("gloo", init_method=f"file://{os.environ['SUITE_STORE']}", rank=rank, world_size=size)

dataset = load_dataset(config)
model = build_model(config, dataset)
numbers = {name: getattr(config.optimizer, name) for name in ("lr", "momentum", "weight_decay")}
settings = config.method.model_dump(exclude={"name"})
optimizer = suite.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), **numbers),
    named_parameters=model.named_parameters(),
    method=config.method.name,
    **settings,
)
images, labels = dataset.train
order = dataset.epoch_order(config.train.seed, 0, size, config.train.batch_size)
for iteration in range(config.train.max_iterations):
    chosen = order[iteration, rank]
    optimizer.zero_grad()
    F.cross_entropy(model(images[chosen]), labels[chosen]).backward()
    optimizer.step()

if rank == 0:
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    found = {"sha256": hashlib.sha256(flat.numpy().tobytes()).hexdigest(), "bytes_sent": optimizer.bytes_sent}
    Path(sys.argv[2]).write_text(json.dumps(found))
sys.stdout.flush()
os._exit(0)

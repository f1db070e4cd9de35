"""What each rank of the exchange benchmark runs: `python -m suite.bench.exchange_ranks SETTINGS OUT`."""

import json
import os
import sys
from functools import partial
from pathlib import Path

import torch

from suite.bench.schemes import DenseScheme, PublishedScheme, gloo_all_reduce, horovod_all_gather
from suite.bench.timing import interleaved
from suite.config import ExperimentConfig, validate_config
from suite.data import load_dataset
from suite.measure import PhaseClock
from suite.methods import build_method
from suite.models import build_model
from suite.plan import Layout
from suite.record.atomic import write_json
from suite.train.exchange import GradientExchange
from suite.world import World, open_world
from suite.world.ranks import end_with_launcher
from suite.world.worker import Memory

_WARM_UP = 1  # rounds


class OurScheme:
    """The exchange of a training run, fed with gradients instead of a back-propagation."""

    def __init__(self, config: ExperimentConfig, world: World, layout: Layout):
        like, self.sizes = torch.zeros(layout.size), list(layout.sizes)
        method = build_method(config.method, config.costs)
        self.exchange = GradientExchange(method, layout, world, PhaseClock(), like)
        self.memories = [Memory(index, 0, like, method.error_feedback) for index in world.local]
        for memory in self.memories:
            self.exchange.init_worker(memory)

    @property
    def messages(self) -> int:
        """Collectives an exchange takes, beside the row of status."""
        return len(self.exchange.plan.messages)

    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        self.exchange.begin(self.memories, lr=1.0)
        with self.exchange.receiving(0):
            for number, part in reversed(list(enumerate(gradient.split(self.sizes)))):
                self.exchange.gradient_ready(0, number, part)
        update = self.exchange.finish([0.0], stop=False, observe=False).update
        self.exchange.commit()
        return update


def slowest(of_ranks: list[list[float]]) -> list[float]:
    """The slowest rank's seconds, round by round."""
    return [max(times) for times in zip(*of_ranks, strict=True)]


def _rank(values: dict, repeats: int, out: Path) -> None:
    config = validate_config(values)
    torch.set_num_threads(config.world.threads)
    world = open_world(config.world)
    with torch.device("meta"):
        named = list(build_model(config, load_dataset(config)).named_parameters())
    layout = Layout.of((name, p.shape) for name, p in named)
    transport = world.transport
    gradient = torch.randn(layout.size, generator=torch.Generator().manual_seed(world.rank))
    working = torch.empty_like(gradient)
    ours = OurScheme(config, world, layout)
    published = PublishedScheme(horovod_all_gather(), world.size, layout, config.method.density)
    gloo = gloo_all_reduce(str(out.with_name("store")), world.rank, world.size)
    schemes = {
        "ours": ours,
        "published_scheme": published,
        "dense_horovod": DenseScheme(transport.all_reduce, world.size, layout),
        "dense_gloo": DenseScheme(gloo, world.size, layout),
    }
    first = {name: scheme(working.copy_(gradient)).clone() for name, scheme in schemes.items()}

    def fresh() -> None:
        working.copy_(gradient)
        transport.gather_objects(None)

    world.bytes_sent = 0.0
    seconds = interleaved(
        {name: partial(scheme, working) for name, scheme in schemes.items()}, repeats, _WARM_UP, fresh
    )
    everyone = transport.gather_objects(seconds)
    if world.rank == 0:
        dense = 2 * (world.size - 1) / world.size * 4 * layout.size
        found = {
            "size": layout.size,
            "tensors": len(layout.sizes),
            "messages": {name: scheme.messages for name, scheme in schemes.items()},
            "bytes_sent": {"ours": world.bytes_sent / (repeats + _WARM_UP)}
            | {"published_scheme": (world.size - 1) * 8 * published.entries}
            | {"dense_horovod": dense, "dense_gloo": dense},
            # Between ours and the published scheme, on the first gradient: both send the same entries.
            "largest_difference": float((first["ours"] - first["published_scheme"]).abs().max()),
            "seconds": {name: slowest([own[name] for own in everyone]) for name in seconds},
        }
        write_json(out, found)
    transport.gather_objects(None)


if __name__ == "__main__":
    end_with_launcher()
    settings = json.loads(sys.argv[1])
    _rank(settings["config"], settings["repeats"], Path(sys.argv[2]))
    sys.stdout.flush()
    # Horovod's background thread may wait for partners at interpreter exit; everything is written.
    os._exit(0)

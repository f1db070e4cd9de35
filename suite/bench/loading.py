"""The pipeline that prepares batches, alone, against the training that consumes them."""

import time
from collections.abc import Iterator
from typing import Any

import torch

from suite.bench.timing import interleaved, medians
from suite.config import ExperimentConfig, validate_config
from suite.data import load_dataset
from suite.models import build_model
from suite.train.memory import keep_freed_memory
from suite.train.tasks import Task, build_task
from suite.world import Worker
from suite.world.worker import FlatParameters

_BATCHES = 4  # a round, one of each hosted worker where there are so many


def bench_loading(config: ExperimentConfig, repeats: int) -> dict[str, Any]:
    """Time what gives one process its batches, and forward and backward on such batches, in turn.

    The process hosts at most four of the workers. Loading is on one thread and includes a batch's share of what an
    epoch begins with (order, random draws); exchange and optimiser are left out, so that training consumes more than
    it would. The limit is a plain copy of a batch as the network takes it.

    Args:
        config: model, data, batch and arithmetic.
        repeats: rounds of four batches that count.

    Returns:
        samples (or tokens) a second that are loaded, consumed, and loaded at a copy's speed, and the ratio of the first
        two.
    """
    config = _alone(config)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    keep_freed_memory()
    try:
        return _measured(config, repeats)
    finally:
        torch.set_num_threads(before)


def _alone(config: ExperimentConfig) -> ExperimentConfig:
    """The configuration with one process, and one thread for loading."""
    values = config.to_dict()
    values["world"] |= {"processes": 1, "transport": "virtual", "controller": "gloo", "threads": 1}
    if "threads" in values["data"]:
        values["data"]["threads"] = 1
    return validate_config(values)


def _measured(config: ExperimentConfig, repeats: int) -> dict[str, Any]:
    dataset = load_dataset(config)
    task = build_task(dataset, config)
    flat = FlatParameters(build_model(config, dataset))
    hosted = range(min(config.world.workers, _BATCHES))
    workers = [Worker(index, config.train.seed, flat, with_residual=False) for index in hosted]
    iterations = dataset.iterations(config.world.workers, config.train.batch_size)
    began = time.perf_counter()
    task.start_epoch(0, workers)
    an_epoch = (time.perf_counter() - began) / (iterations * len(workers))
    taker = _Taker()
    places = _places(iterations, workers)

    def load() -> None:
        for _ in range(_BATCHES):
            taker.take(task, *next(places))

    def train() -> None:
        for _ in range(_BATCHES):
            worker, number = next(places)
            with worker.computing() as model, _autocast(config):
                loss = task.loss(model, worker, number)
            loss.backward()

    taker.take(task, *next(places))
    batch = taker.batch
    copy = torch.empty_like(batch)
    cases = {"load": load, "train": train, "copy": lambda: [copy.copy_(batch) for _ in range(_BATCHES)]}
    seconds = {name: found / _BATCHES for name, found in medians(interleaved(cases, repeats)).items()}
    seconds["load"] += an_epoch
    held = batch.numel() if dataset.unit == "tokens" else len(batch)
    return {
        "unit": dataset.unit,
        "batch": held,
        "loaded": held / seconds["load"],
        "consumed": held / seconds["train"],
        "copied": held / seconds["copy"],
        "ratio": seconds["train"] / seconds["load"],
        "seconds_a_batch": seconds,
    }


def _places(iterations: int, workers: list[Worker]) -> Iterator[tuple[Worker, int]]:
    """Worker and number of the batches, in the order of training; without end."""
    while True:
        for number in range(iterations):
            for worker in workers:
                yield worker, number


def _autocast(config: ExperimentConfig) -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, enabled=config.compute.precision == "bfloat16")


class _Taken(Exception):
    """Ends a task's work on a batch where the network would begin its own."""


class _Taker:
    """Stands in for a network and keeps what a task gives it."""

    def __call__(self, batch: torch.Tensor, *rest: Any) -> Any:
        self.batch = batch
        raise _Taken

    def take(self, task: Task, worker: Worker, number: int) -> None:
        """The next batch, ready for the network."""
        try:
            task.loss(self, worker, number)
        except _Taken:
            pass

"""The virtual world against plain training: 16 workers an iteration, or as many samples in steps of one worker."""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from suite.bench.step import train_rows
from suite.config import ExperimentConfig
from suite.data import load_dataset
from suite.models import build_model
from suite.train.memory import keep_freed_memory
from suite.train.tasks import build_task
from suite.world import Worker
from suite.world.worker import FlatParameters

_METHODS = ("dense", "slgs", "lags")


def bench_world(config: ExperimentConfig, iterations: int, rounds: int) -> dict[str, Any]:
    """Time iterations of P virtual workers against P plain steps: batch, forward, backward and torch.optim.SGD.

    Rounds alternate between them. Plain steps are the limit: the virtual world has to compute the same forward and
    backward passes. What it adds is accumulating, selecting and averaging, and changing workers.

    Args:
        config: model, data and batch; its world is made virtual.
        iterations: that count, of each run.
        rounds: over all cases.

    Returns:
        median milliseconds an iteration by case, and ratio_to_plain.
    """
    virtual = config.model_copy(update={"world": config.world.model_copy(
        update={"processes": 1, "transport": "virtual"}
    )})  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in ("plain", *_METHODS)}
    with tempfile.TemporaryDirectory(prefix="suite-bench-") as folder:
        for number in range(rounds):
            seconds["plain"] += _plain(virtual, iterations)
            for method in _METHODS:
                rows = train_rows(
                    virtual, iterations, method, virtual.world.overlap, Path(folder) / f"{number}-{method}"
                )
                seconds[method] += [row["iteration_s"] for row in rows]
    milliseconds = {name: 1e3 * statistics.median(of) for name, of in seconds.items()}
    return {
        "benchmark": "world",
        "model": config.model.name,
        "data": config.data.name,
        "workers": config.world.workers,
        "batch": config.train.batch_size,
        "threads": config.world.threads,
        "iterations": iterations * rounds,
        "milliseconds": milliseconds,
        "ratio_to_plain": {name: value / milliseconds["plain"] for name, value in milliseconds.items()},
    }


def _plain(config: ExperimentConfig, iterations: int) -> list[float]:
    """Seconds of P steps of one worker that has no virtual others."""
    torch.set_num_threads(config.world.threads)
    keep_freed_memory()
    dataset, steps = load_dataset(config), config.world.workers
    model = build_model(config, dataset)
    optimizer = torch.optim.SGD(model.parameters(), config.optimizer.lr, config.optimizer.momentum)
    # Reads worker 0's batches; its memory is a vector nobody touches.
    task, worker = build_task(dataset, config), Worker(0, config.train.seed, FlatParameters(model), False)
    task.start_epoch(0, [worker])
    a_epoch = dataset.iterations(config.world.workers, config.train.batch_size)
    out, number = [], 0
    for count in range(-1, iterations):
        began = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            task.loss(model, worker, number % a_epoch).backward()
            optimizer.step()
            number += 1
        if count >= 0:
            out.append(time.perf_counter() - began)
    return out

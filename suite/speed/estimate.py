"""What a profile will take before anything is trained: iterations, hours and disk, by experiment and method.

Times are predictions (`suite.speed.runs`) at the published efficiency of the authors' card, the prediction's iteration
times the number of iterations; loading, evaluation and waiting in a queue are not in them. Sizes are counted: what a
checkpoint holds, twice because the one before is kept, and the tables' rows.
"""

from collections.abc import Iterator
from typing import Any

from suite.config import ExperimentConfig, validate_config
from suite.config.profiles import profile_cells
from suite.methods import Method, build_method
from suite.methods.local import LocalMethod
from suite.plan import Layout
from suite.speed.runs import run_time_rows
from suite.speed.subject import described_layout

# Training samples, or tokens, of data that are not read to be counted: their sources' own numbers.
_SIZES = {"cifar10": 50_000, "imagenet": 1_281_167, "ptb": 929_589}
_CHECKPOINTS = 2  # the newest and its spare
_FLOAT = 4
# Compressed bytes a row, as the tables of stored runs have them.
_ITERATION_ROW, _ASSUMPTION_ROW = 60, 14


def estimate(profile: str, network: str) -> Iterator[dict[str, Any]]:
    """A row an experiment and method of a profile.

    Args:
        network: the named network that times are predicted for.

    Yields:
        `experiment`, `method`, `seeds`, `ranks`, `iterations` of one run, `hours` of one run (None where no time can be
        predicted), `rank_hours` of all seeds together, `bytes` of all seeds on disk.
    """
    predicted = {
        (row["experiment"], row["method"]): row["iteration_s"]
        for row in run_time_rows(profile)
        if row["network"] == network and row["evidence"] == "predicted"
    }
    groups: dict[tuple[str, str], list] = {}
    for cell in profile_cells(profile):
        groups.setdefault((cell.experiment, cell.method), []).append(cell)
    for (experiment, method), cells in groups.items():
        config = validate_config(cells[0].config)
        n = iterations(config)
        seconds = predicted.get((experiment, method))
        hours = None if seconds is None else n * seconds / 3600
        yield {
            "experiment": experiment, "method": method, "seeds": len(cells), "ranks": config.world.processes,
            "iterations": n, "hours": hours,
            "rank_hours": None if hours is None else hours * len(cells) * config.world.processes,
            "bytes": len(cells) * disk(config, n),
        }  # fmt: skip


def iterations(config: ExperimentConfig) -> int:
    """Of a whole run; data that is not on disk already is counted by its source's number."""
    data, train, workers = config.data, config.train, config.world.workers
    size = _SIZES.get(data.name)
    if size is None:
        from suite.data import load_dataset

        an_epoch = load_dataset(config).iterations(workers, train.batch_size)
    elif config.model.kind == "text":
        tokens = min(size, getattr(data, "max_train_tokens", None) or size)
        an_epoch = (tokens // (workers * train.batch_size) - 1) // data.sequence_length
    else:
        an_epoch = min(size, getattr(data, "max_train_samples", None) or size) // (workers * train.batch_size)
    whole = train.epochs * an_epoch
    return min(whole, train.max_iterations or whole)


def disk(config: ExperimentConfig, n: int) -> float:
    """Bytes of one run's folder after `n` iterations: checkpoints and tables."""
    layout = described_layout(config)
    method = build_method(config.method, config.costs)
    # Parameters and momentum once, a residual a worker and what else it remembers, or what it steps with.
    own = bool(method.error_feedback) + method.remembered + _own_vectors(config, method, layout)
    vectors = 1 + bool(config.optimizer.momentum) + config.world.workers * own
    checkpoints = _CHECKPOINTS * vectors * layout.size * _FLOAT
    every, plan = config.assumption.every, method.plan(layout, epoch=config.train.epochs)
    measured = (n // every) * len(plan.segments) if every and plan.is_sparse else 0
    return checkpoints + n * _ITERATION_ROW + measured * _ASSUMPTION_ROW


def _own_vectors(config: ExperimentConfig, method: Method, layout: Layout) -> int:
    """Vectors of a worker's own under a local-update method: parameters, momentum and the method's."""
    if not isinstance(method, LocalMethod):
        return 0
    import torch

    beside = method.init(torch.empty(layout.size, device="meta")).values()
    return 1 + bool(config.optimizer.momentum) + sum(isinstance(value, torch.Tensor) for value in beside)

"""Tasks of small problems whose model says what is minimised, and whose distance from the solution can be told."""

import torch
from torch import nn

from suite.config.experiment import ExperimentConfig
from suite.data.quadratics import Quadratics
from suite.world import Worker

_EVALUATION_SAMPLES = 1024  # at a time


class Convex:
    """Labelled vectors; what counts is the objective over all training samples."""

    metric, higher_is_better = "training_objective", False

    def __init__(self, dataset, config: ExperimentConfig):
        self.dataset, self.seed = dataset, config.train.seed
        self.shape = (config.world.workers, config.train.batch_size)

    def start_epoch(self, epoch: int, workers: list[Worker]) -> None:
        self.epoch = self.dataset.epoch(self.seed, epoch, *self.shape, [worker.index for worker in workers])

    def loss(self, model: nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
        return model.objective(*self.epoch.batch(worker.index, iteration))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """The objective over the test samples, as the loss, and over the training samples."""
        return {"test_loss": self._mean(model, "test_batches"), self.metric: self._mean(model, "train_batches")}

    def _mean(self, model: nn.Module, which: str) -> float:
        total, seen = 0.0, 0
        for vectors, labels in getattr(self.dataset, which)(_EVALUATION_SAMPLES):
            total += float(model.losses(vectors, labels).double().sum())
            seen += len(labels)
        return total / seen + float(model.regularisation())


class Robust(Convex):
    """Grouped vectors; what counts is the objective under the worst weights of the groups."""

    metric = "worst_case_objective"

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        totals = torch.zeros(model.groups, dtype=torch.float64)
        counts = torch.zeros_like(totals)
        for vectors, targets in self.dataset.test_batches(_EVALUATION_SAMPLES):
            groups = targets[:, 1].long().cpu()
            losses = model.losses(vectors, targets).double().cpu()
            totals.index_add_(0, groups, losses)
            counts.index_add_(0, groups, torch.ones_like(losses))
        means = totals / counts
        loss = float(means.mean()) + float(model.regularisation())
        return {"test_loss": loss, self.metric: float(model.worst(means))}


class SaddlePoint:
    """A function a worker; what counts is how far from the saddle of their mean the parameters are."""

    metric, higher_is_better = "distance_to_saddle", False

    def __init__(self, dataset: Quadratics, config: ExperimentConfig):
        workers = config.world.workers
        self.coefficients = [dataset.coefficients(worker) for worker in range(workers)]
        self.mean = tuple(torch.from_numpy(values).to(dataset.device) for values in dataset.mean(workers))
        self.saddle = torch.from_numpy(dataset.saddle(workers)).to(dataset.device)

    def start_epoch(self, epoch: int, workers: list[Worker]) -> None:
        """All epochs are alike."""

    def loss(self, model: nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
        return model(self.coefficients[worker.index])

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        point = torch.cat([model.x, model.y]).double()
        value = model(tuple(values.float() for values in self.mean))
        return {"test_loss": float(value), self.metric: float(torch.linalg.vector_norm(point - self.saddle))}

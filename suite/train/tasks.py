"""What differs between images, vectors and text: a worker's loss on its next batch, and evaluation."""

import math
from typing import Protocol

import torch
from torch import nn
from torch.nn import functional as F

from suite.config.experiment import ExperimentConfig
from suite.data import Dataset, ImageDataset
from suite.train.problems import Convex, Robust, SaddlePoint
from suite.world import Worker

_EVALUATION_IMAGES = 256  # at a time


class Task(Protocol):
    """A kind of problem.

    Attributes:
        metric: name of the number that counts.
        higher_is_better: its direction.
    """

    metric: str
    higher_is_better: bool

    def start_epoch(self, epoch: int, workers: list[Worker]) -> None:
        """Prepare `epoch` (from 0); called before its first iteration and, after a resume, before the next one."""
        ...

    def loss(self, model: nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
        """Mean loss of a worker's batch of this epoch's `iteration` (from 0); may advance `worker.hidden`."""
        ...

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """test_loss and the metric over the whole test set."""
        ...


class Classification(Task):
    """Images, cross-entropy, top-1 accuracy."""

    metric, higher_is_better = "test_accuracy", True

    def __init__(self, dataset: ImageDataset, config: ExperimentConfig):
        self.dataset, self.seed = dataset, config.train.seed
        self.shape = (config.world.workers, config.train.batch_size)
        self.channels_last = config.compute.channels_last and config.model.kind == "images"

    def start_epoch(self, epoch: int, workers: list[Worker]) -> None:
        self.epoch = self.dataset.epoch(self.seed, epoch, *self.shape, [worker.index for worker in workers])

    def inputs(self, worker: Worker, iteration: int) -> tuple[torch.Tensor, torch.Tensor]:
        """A worker's batch as the network takes it, and what it should say."""
        samples, targets = self.epoch.batch(worker.index, iteration)
        return self._laid_out(samples), targets

    def loss(self, model: nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
        images, labels = self.inputs(worker, iteration)
        return F.cross_entropy(model(images), labels)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        total, correct, seen = 0.0, 0, 0
        for images, labels in self.dataset.test_batches(_EVALUATION_IMAGES):
            logits = model(self._laid_out(images)).float()
            total += float(F.cross_entropy(logits, labels, reduction="sum"))
            correct += int((logits.argmax(dim=1) == labels).sum())
            seen += len(labels)
        return {"test_loss": total / seen, self.metric: correct / seen}

    def _laid_out(self, samples: torch.Tensor) -> torch.Tensor:
        return samples.contiguous(memory_format=torch.channels_last) if self.channels_last else samples


class Regression(Classification):
    """Vectors, half the squared error, and how near to stationary the whole problem is."""

    metric, higher_is_better = "gradient_norm_squared", False

    def loss(self, model: nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
        vectors, targets = self.inputs(worker, iteration)
        return 0.5 * F.mse_loss(model(vectors), targets)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Squared norm of the full gradient: of the mean loss over all samples, of which these are."""
        vectors, targets = self.dataset.test
        with torch.enable_grad():
            loss = 0.5 * F.mse_loss(model(vectors), targets)
            gradient = torch.autograd.grad(loss, list(model.parameters()))
        squared = sum(float(part.double().square().sum()) for part in gradient)
        return {"test_loss": float(loss.detach()), self.metric: squared}


class LanguageModel(Task):
    """Text in contiguous streams, hidden state carried from window to window, perplexity."""

    metric, higher_is_better = "test_perplexity", False
    _EVALUATION_STREAMS = 16

    def __init__(self, dataset, config: ExperimentConfig):
        self.dataset, self.seed = dataset, config.train.seed
        self.iterations = dataset.iterations(config.world.workers, config.train.batch_size)
        self.streams = dataset.streams(config.world.workers, config.train.batch_size)

    def start_epoch(self, epoch: int, workers: list[Worker]) -> None:
        """Hidden states belong to the text before; at an epoch's first window there is none. See `loss`."""
        self.order = self.dataset.window_order(self.seed, epoch, self.iterations)

    def loss(self, model: nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
        start = int(self.order[iteration]) * self.dataset.sequence_length
        window = self.streams[worker.index, :, start : start + self.dataset.sequence_length + 1]
        logits, hidden = model(window[:, :-1], worker.hidden if iteration else None)
        worker.hidden = tuple(h.detach() for h in hidden)
        return F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Perplexity exp(total loss / tokens), summed over every test token but the first of each stream."""
        length = len(self.dataset.test) // self._EVALUATION_STREAMS
        text = self.dataset.test[: self._EVALUATION_STREAMS * length].view(self._EVALUATION_STREAMS, length)
        total, hidden = 0.0, None
        for start in range(0, length - 1, self.dataset.sequence_length):
            window = text[:, start : start + self.dataset.sequence_length + 1]
            logits, hidden = model(window[:, :-1], hidden)
            total += float(F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten(), reduction="sum"))
        loss = total / (self._EVALUATION_STREAMS * (length - 1))
        return {"test_loss": loss, self.metric: math.exp(min(loss, 700.0))}


_TASKS = {
    "images": Classification,
    "vectors": Regression,
    "text": LanguageModel,
    "labelled vectors": Convex,
    "grouped vectors": Robust,
    "saddles": SaddlePoint,
}


def build_task(dataset: Dataset, config: ExperimentConfig) -> Task:
    """The task that reads this kind of data."""
    return _TASKS[config.data.kind](dataset, config)

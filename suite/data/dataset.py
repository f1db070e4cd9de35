"""The two shapes of data: independent images, and text in contiguous streams."""

import hashlib
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch

Batch = tuple[torch.Tensor, torch.Tensor]


class Dataset(Protocol):
    """What training needs to know of data. Every worker takes the same number of iterations an epoch."""

    unit: str
    classes: int
    channels: int

    @property
    def train_size(self) -> int: ...

    @property
    def sha256(self) -> str:
        """Of everything that is trained and tested on."""
        ...

    def iterations(self, workers: int, batch: int) -> int:
        """Iterations an epoch; the rest of the data is dropped in that epoch."""
        ...

    def dropped(self, workers: int, batch: int) -> int:
        """Samples (or tokens) no worker sees in one epoch."""
        ...

    def to(self, device: torch.device) -> "Dataset":
        """The same data on a device."""
        ...


def _hash(*tensors: torch.Tensor) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class ImageDataset:
    """Images float32 [n, channels, H, W] with labels int64 [n]."""

    train: Batch
    test: Batch
    classes: int
    unit: str = "samples"

    @property
    def channels(self) -> int:
        return self.train[0].shape[1]

    @property
    def train_size(self) -> int:
        return len(self.train[0])

    @property
    def sha256(self) -> str:
        return _hash(*self.train, *self.test)

    def iterations(self, workers: int, batch: int) -> int:
        return self.train_size // (workers * batch)

    def dropped(self, workers: int, batch: int) -> int:
        return self.train_size - self.iterations(workers, batch) * workers * batch

    def to(self, device: torch.device) -> "ImageDataset":
        train, test = (tuple(tensor.to(device) for tensor in part) for part in (self.train, self.test))
        return replace(self, train=train, test=test)

    def epoch_order(self, seed: int, epoch: int, workers: int, batch: int) -> torch.Tensor:
        """Who takes what in `epoch`: sample numbers int64 [iterations, workers, batch], without repetition.

        A function of (seed, epoch) that every process computes alike; row p is worker p's.
        """
        order = np.random.default_rng([seed, epoch]).permutation(self.train_size)
        n = self.iterations(workers, batch)
        return torch.from_numpy(order[: n * workers * batch].reshape(n, workers, batch))


@dataclass(frozen=True)
class TextDataset:
    """Token streams int64 [n] of training and test text."""

    train: torch.Tensor
    test: torch.Tensor
    vocabulary: tuple[str, ...]
    sequence_length: int
    unit: str = "tokens"
    channels: int = 0

    @property
    def classes(self) -> int:
        return len(self.vocabulary)

    @property
    def train_size(self) -> int:
        return len(self.train)

    @property
    def sha256(self) -> str:
        return _hash(self.train, self.test)

    def iterations(self, workers: int, batch: int) -> int:
        return (self.train_size // (workers * batch) - 1) // self.sequence_length

    def dropped(self, workers: int, batch: int) -> int:
        return self.train_size - self.iterations(workers, batch) * workers * batch * self.sequence_length

    def to(self, device: torch.device) -> "TextDataset":
        return replace(self, train=self.train.to(device), test=self.test.to(device))

    def streams(self, workers: int, batch: int) -> torch.Tensor:
        """The training text as contiguous streams int64 [workers, batch, length]: worker p reads row p in order.

        The text is cut once, so a window continues where the window before it ended, in every stream.
        """
        length = self.train_size // (workers * batch)
        return self.train[: workers * batch * length].view(workers, batch, length)

"""The shapes of data: independent samples, in memory or read as they are needed, and text in contiguous streams."""

import hashlib
from collections.abc import Iterable, Iterator
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


class Epoch(Protocol):
    """Who takes which samples in one epoch."""

    def batch(self, worker: int, iteration: int) -> Batch:
        """Samples float32 [B, channels, H, W] (vectors: [B, features]) and their labels, int64 [B] of classes."""
        ...


class SampleDataset(Dataset, Protocol):
    """Independent samples, most often images: every epoch deals them out anew, the same number to every worker."""

    def epoch(self, seed: int, epoch: int, workers: int, batch: int, local: Iterable[int]) -> Epoch:
        """The batches of the `local` workers in `epoch`: a function of (seed, epoch, worker), not of who is local."""
        ...

    def test_batches(self, size: int) -> Iterator[Batch]:
        """The test samples in order, `size` at a time."""
        ...

    def iterations(self, workers: int, batch: int) -> int:
        return self.train_size // (workers * batch)

    def dropped(self, workers: int, batch: int) -> int:
        return self.train_size - self.iterations(workers, batch) * workers * batch

    def epoch_order(self, seed: int, epoch: int, workers: int, batch: int) -> torch.Tensor:
        """Who takes what in `epoch`: sample numbers int64 [iterations, workers, batch], without repetition.

        A function of (seed, epoch) that every process computes alike; row p is worker p's.
        """
        order = np.random.default_rng([seed, epoch]).permutation(self.train_size)
        n = self.iterations(workers, batch)
        return torch.from_numpy(order[: n * workers * batch].reshape(n, workers, batch))


def scaled(images: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """Images uint8 [B, channels, H, W] as the network takes them: float32, with channels of this mean and deviation.

    Mean and deviation, [channels, 1, 1], are those of values between 0 and 1.
    """
    return images.float().mul_(1 / 255).sub_(mean).div_(std)


def hash_of(*tensors: torch.Tensor) -> str:
    """SHA-256 of tensors' values, one after the other."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Augmentation:
    """Black pixels around an image, a random crop of its own size, random mirroring (He et al. 2016, section 4.2)."""

    padding: int

    def draw(self, seed: int, epoch: int, worker: int, shape: tuple[int, int]) -> torch.Tensor:
        """What happens to a worker's samples in `epoch`: row, column and mirroring int64 [3, *shape]."""
        rng = np.random.default_rng([seed, epoch, worker, 0xA06])
        most = 2 * self.padding
        return torch.from_numpy(np.stack([rng.integers(high + 1, size=shape) for high in (most, most, 1)]))

    def apply(self, images: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        """Crop and mirror images [B, channels, H, W] as drawn, int64 [3, B]."""
        height, width = images.shape[2:]
        padded = torch.nn.functional.pad(images, [self.padding] * 4)
        top, left, mirrored = drawn[:, :, None].to(images.device)
        rows = top + torch.arange(height, device=images.device)
        columns = torch.arange(width, device=images.device).expand(len(images), width)
        columns = left + torch.where(mirrored.bool(), width - 1 - columns, columns)
        each = torch.arange(len(images), device=images.device)[:, None, None]
        # Channels come last by this indexing and go back to their place as a view.
        return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


@dataclass(frozen=True)
class ImageDataset(SampleDataset):
    """Images [n, channels, H, W] with labels int64 [n], or vectors [n, features] with targets [n, 1], all in memory.

    Attributes:
        train, test: images float32 as the network takes them, or uint8 where `scale` is given.
        scale: mean and deviation of the channels, float32 [channels, 1, 1], of values between 0 and 1.
        augmentation: of training images.
    """

    train: Batch
    test: Batch
    classes: int
    unit: str = "samples"
    scale: tuple[torch.Tensor, torch.Tensor] | None = None
    augmentation: Augmentation | None = None

    @property
    def channels(self) -> int:
        return self.train[0].shape[1]

    @property
    def train_size(self) -> int:
        return len(self.train[0])

    @property
    def sha256(self) -> str:
        return hash_of(*self.train, *self.test)

    def to(self, device: torch.device) -> "ImageDataset":
        train, test = (tuple(tensor.to(device) for tensor in part) for part in (self.train, self.test))
        scale = self.scale and tuple(tensor.to(device) for tensor in self.scale)
        return replace(self, train=train, test=test, scale=scale)

    def epoch(self, seed: int, epoch: int, workers: int, batch: int, local: Iterable[int]) -> "ImageEpoch":
        order = self.epoch_order(seed, epoch, workers, batch)
        drawn = {}
        if self.augmentation is not None:
            shape = (len(order), batch)
            drawn = {worker: self.augmentation.draw(seed, epoch, worker, shape) for worker in local}
        return ImageEpoch(self, order, drawn)

    def test_batches(self, size: int) -> Iterator[Batch]:
        return self._in_order(self.test, size)

    def train_batches(self, size: int) -> Iterator[Batch]:
        """The training samples in order, `size` at a time, not augmented."""
        return self._in_order(self.train, size)

    def _in_order(self, part: Batch, size: int) -> Iterator[Batch]:
        for images, labels in zip(*(tensor.split(size) for tensor in part), strict=True):
            yield self.scaled(images), labels

    def scaled(self, images: torch.Tensor) -> torch.Tensor:
        """Stored images as the network takes them, float32."""
        if self.scale is None:
            return images
        return scaled(images, *self.scale)


@dataclass(frozen=True)
class ImageEpoch(Epoch):
    """One epoch of an `ImageDataset`: who takes what, and how it is augmented."""

    dataset: ImageDataset
    order: torch.Tensor
    drawn: dict[int, torch.Tensor]

    def batch(self, worker: int, iteration: int) -> Batch:
        images, labels = self.dataset.train
        chosen = self.order[iteration, worker]
        taken = images[chosen]
        if self.dataset.augmentation is not None:
            taken = self.dataset.augmentation.apply(taken, self.drawn[worker][:, iteration])
        return self.dataset.scaled(taken), labels[chosen]


@dataclass(frozen=True)
class TextDataset:
    """Token streams int64 [n] of training and test text.

    Attributes:
        shuffled: windows are taken in random order, as the authors' code takes them.
    """

    train: torch.Tensor
    test: torch.Tensor
    vocabulary: tuple[str, ...]
    sequence_length: int
    unit: str = "tokens"
    channels: int = 0
    shuffled: bool = False

    @property
    def classes(self) -> int:
        return len(self.vocabulary)

    @property
    def train_size(self) -> int:
        return len(self.train)

    @property
    def sha256(self) -> str:
        return hash_of(self.train, self.test)

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

    def window_order(self, seed: int, epoch: int, iterations: int) -> np.ndarray:
        """Numbers of the windows of each stream in the order in which they are read, int64 [iterations]."""
        if not self.shuffled:
            return np.arange(iterations)
        return np.random.default_rng([seed, epoch]).permutation(iterations)

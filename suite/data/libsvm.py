"""Labelled vectors from text files in LIBSVM's format: `label index:value ...`, a sample a line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from suite.config.problems import LibsvmConfig
from suite.data.dataset import Batch, Epoch, SampleDataset, hash_of
from suite.data.files import VARIABLE, Arrays, Source, cached, data_root, file_hash
from suite.errors import ConfigError


@dataclass(frozen=True)
class Rows:
    """Sparse vectors in compressed rows, with labels.

    Attributes:
        starts: int64 [n + 1], where each vector's entries begin.
        columns: int64, of every entry.
        values: float32, of every entry.
        labels: float32 [n], -1 or 1.
    """

    starts: torch.Tensor
    columns: torch.Tensor
    values: torch.Tensor
    labels: torch.Tensor

    def dense(self, chosen: torch.Tensor, features: int) -> Batch:
        """Vectors float32 [B, features] of samples int64 [B], and their labels."""
        first, lengths = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
        rows = torch.repeat_interleave(torch.arange(len(chosen), device=chosen.device), lengths)
        # The place of an entry within its row, moved to where the row begins.
        within = torch.arange(len(rows), device=chosen.device) - (lengths.cumsum(0) - lengths)[rows]
        entries = first[rows] + within
        out = self.values.new_zeros(len(chosen), features)
        out[rows, self.columns[entries]] = self.values[entries]
        return out, self.labels[chosen]

    def to(self, device: torch.device) -> "Rows":
        """The same on a device."""
        return Rows(*(tensor.to(device) for tensor in (self.starts, self.columns, self.values, self.labels)))


@dataclass(frozen=True)
class SparseDataset(SampleDataset):
    """Vectors that are kept sparse and made dense by the batch."""

    train: Rows
    test: Rows
    channels: int
    classes: int = 2
    unit: str = "samples"

    @property
    def train_size(self) -> int:
        return len(self.train.labels)

    @property
    def sha256(self) -> str:
        parts = (self.train, self.test)
        return hash_of(*(tensor for rows in parts for tensor in (rows.starts, rows.columns, rows.values, rows.labels)))

    def to(self, device: torch.device) -> "SparseDataset":
        return SparseDataset(self.train.to(device), self.test.to(device), self.channels)

    def epoch(self, seed: int, epoch: int, workers: int, batch: int, local: Iterable[int]) -> "SparseEpoch":
        return SparseEpoch(self, self.epoch_order(seed, epoch, workers, batch).to(self.train.starts.device))

    def test_batches(self, size: int) -> Iterator[Batch]:
        return self._in_order(self.test, size)

    def train_batches(self, size: int) -> Iterator[Batch]:
        """The training samples in order, `size` at a time."""
        return self._in_order(self.train, size)

    def _in_order(self, rows: Rows, size: int) -> Iterator[Batch]:
        for chosen in torch.arange(len(rows.labels), device=rows.labels.device).split(size):
            yield rows.dense(chosen, self.channels)


@dataclass(frozen=True)
class SparseEpoch(Epoch):
    """Who takes what in one epoch."""

    dataset: SparseDataset
    order: torch.Tensor

    def batch(self, worker: int, iteration: int) -> Batch:
        return self.dataset.train.dense(self.order[iteration, worker], self.dataset.channels)


def load_libsvm(config: LibsvmConfig) -> SparseDataset:
    """The samples of one file, and those of another to test on.

    Raises:
        ConfigError: a file is missing, is not in the format, has other than two labels, or vectors that are too long.
    """
    train = _rows(config.file)
    test = train if config.test_file is None else _rows(config.test_file)
    longest = 1 + max(_largest(rows) for rows in (train, test))
    if config.features is not None and longest > config.features:
        raise ConfigError(
            f"{config.file} has vectors of {longest:,} entries and data.features is {config.features:,}; set it to "
            f"{longest} or more, or leave it out"
        )
    return SparseDataset(train, test, config.features or longest)


def _largest(rows: Rows) -> int:
    return int(rows.columns.max()) if len(rows.columns) else 0


def _rows(name: str) -> Rows:
    root = data_root()
    if root is None:
        raise ConfigError(
            f"{name} is looked for in the folder of data; name it in the variable {VARIABLE} or with --data-root"
        )
    if not (root / name).is_file():
        raise ConfigError(f"{root} holds no file {name}; correct data.file, {VARIABLE} or --data-root")
    arrays = cached("libsvm", Source(root / name, file_hash, _decode))
    return Rows(*(torch.from_numpy(arrays[part]) for part in ("starts", "columns", "values", "labels")))


def _decode(path: Path) -> Arrays:
    from sklearn.datasets import load_svmlight_file

    try:
        matrix, labels = load_svmlight_file(str(path), dtype=np.float32)
    except (ValueError, UnicodeDecodeError, EOFError, OSError) as error:
        raise ConfigError(f"{path} is not in LIBSVM's format ({error}); copy it anew") from error
    found = np.unique(labels)
    if len(found) != 2:
        some = ", ".join(f"{label:g}" for label in found[:4]) + (" and more" if len(found) > 4 else "")
        raise ConfigError(f"{path} has the labels {some}, and a linear classifier has two; choose another file")
    return {
        "starts": matrix.indptr.astype(np.int64),
        "columns": matrix.indices.astype(np.int64),
        "values": matrix.data.astype(np.float32),
        "labels": np.where(labels == found[1], 1, -1).astype(np.float32),
    }

"""Data sets, their fixed train and test splits, and which worker takes what when.

`load_dataset` reads one; all randomness is a function of the recorded seeds, the epoch and the worker.
"""

from functools import lru_cache

from suite.config.experiment import DataConfig, ExperimentConfig
from suite.data.cifar10 import load_cifar10
from suite.data.dataset import Dataset, ImageDataset, TextDataset
from suite.data.digits import load_digits
from suite.data.ptb import load_ptb
from suite.data.pydoc import load_pydoc
from suite.data.synthetic import load_synthetic
from suite.errors import ConfigError

_LOADERS = {
    "digits": load_digits,
    "synthetic": load_synthetic,
    "cifar10": load_cifar10,
    "pydoc": load_pydoc,
    "ptb": load_ptb,
}


def load_dataset(config: ExperimentConfig) -> Dataset:
    """The data of a run; refuses one too small to give every worker a batch."""
    dataset = _read(config.data)
    workers, batch = config.world.workers, config.train.batch_size
    if dataset.iterations(workers, batch) < 1:
        raise ConfigError(
            f"{dataset.train_size} training {dataset.unit} cannot give {workers} workers a batch of {batch} each; "
            "take fewer workers (world.workers) or a smaller batch (train.batch_size)"
        )
    return dataset


@lru_cache(maxsize=1)
def _read(config: DataConfig) -> Dataset:
    # Kept, because a run's inputs are checked before its folder is touched and then used; nobody writes to the tensors.
    return _LOADERS[config.name](config)


__all__ = ["Dataset", "ImageDataset", "TextDataset", "load_dataset"]

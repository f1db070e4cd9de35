"""Data sets, their fixed train and test splits, and which worker takes what when.

`load_dataset` reads one; all randomness is a function of the recorded seeds, the epoch and the worker.
"""

import os
from functools import lru_cache

from suite.config.experiment import DataConfig, ExperimentConfig
from suite.data.cifar10 import find_cifar10, load_cifar10
from suite.data.dataset import Dataset, ImageDataset, SampleDataset, TextDataset
from suite.data.digits import load_digits
from suite.data.files import VARIABLE, Source, data_root
from suite.data.imagenet import find_imagenet, load_imagenet
from suite.data.libsvm import load_libsvm
from suite.data.ptb import find_ptb, load_ptb
from suite.data.pydoc import load_pydoc
from suite.data.quadratics import load_quadratics
from suite.data.synthetic import load_synthetic
from suite.data.teacher import load_teacher
from suite.data.vectors import load_grouped, load_labelled
from suite.errors import ConfigError

_LOADERS = {
    "digits": load_digits,
    "synthetic": load_synthetic,
    "teacher": load_teacher,
    "labelled": load_labelled,
    "grouped": load_grouped,
    "libsvm": load_libsvm,
    "quadratics": load_quadratics,
    "cifar10": load_cifar10,
    "imagenet": load_imagenet,
    "pydoc": load_pydoc,
    "ptb": load_ptb,
}

# Of data that lie in the folder of data.
FINDERS = {"cifar10": find_cifar10, "imagenet": find_imagenet, "ptb": find_ptb}


def find_data(name: str) -> Source | None:
    """Where a data set lies, unread; None for one that needs no folder: it ships with the suite or is downloaded.

    Raises:
        ConfigError: it is not in the folder of data, or nobody named that folder.
    """
    return FINDERS[name](data_root()) if name in FINDERS else None


def load_dataset(config: ExperimentConfig) -> Dataset:
    """The data of a run; refuses one too small to give every worker a batch."""
    dataset = _read(config.data, os.environ.get(VARIABLE))
    workers, batch = config.world.workers, config.train.batch_size
    if dataset.iterations(workers, batch) < 1:
        raise ConfigError(
            f"{dataset.train_size} training {dataset.unit} cannot give {workers} workers a batch of {batch} each; "
            "take fewer workers (world.workers) or a smaller batch (train.batch_size)"
        )
    return dataset


@lru_cache(maxsize=1)
def _read(config: DataConfig, root: str | None) -> Dataset:
    # Kept, because a run's inputs are checked before its folder is touched and then used; nobody writes to the tensors.
    try:
        return _LOADERS[config.name](config)
    except OSError as error:
        where = f" in {root}" if root else ""
        raise ConfigError(f"the data of {config.name}{where} cannot be read ({error})") from error


__all__ = ["FINDERS", "Dataset", "ImageDataset", "SampleDataset", "TextDataset", "find_data", "load_dataset"]

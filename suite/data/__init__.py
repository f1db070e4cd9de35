"""Data sets, their fixed train and test splits, and which worker takes what when.

`load_dataset` reads one; all randomness is a function of the recorded seeds, the epoch and the worker.
"""

from functools import lru_cache

from suite.config.experiment import DigitsConfig, ExperimentConfig, PydocConfig
from suite.data.dataset import Dataset, ImageDataset, TextDataset
from suite.data.digits import load_digits
from suite.data.pydoc import load_pydoc
from suite.errors import ConfigError


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
def _read(config: DigitsConfig | PydocConfig) -> Dataset:
    # Kept, because a run's inputs are checked before its folder is touched and then used; nobody writes to the tensors.
    return load_digits(config) if config.name == "digits" else load_pydoc(config)


__all__ = ["Dataset", "ImageDataset", "TextDataset", "load_dataset"]

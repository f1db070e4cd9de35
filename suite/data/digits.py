"""scikit-learn's handwritten digits: real scans, and already on every machine that can run the suite."""

import importlib.util
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from suite.config.experiment import DigitsConfig
from suite.data.dataset import ImageDataset
from suite.errors import ConfigError

_CLASSES = 10


def load_digits(config: DigitsConfig) -> ImageDataset:
    """1,797 grey images of 8 x 8 pixels in 10 classes, scaled to mean 0 and deviation 1 of the training split.

    The split takes `test_fraction` of every class and is fixed by `split_seed`.
    """
    table = _read_table()
    labels = table[:, -1].astype(np.int64)
    test = _stratified_choice(labels, config.test_fraction, config.split_seed)
    images = torch.from_numpy(table[:, :-1].astype(np.float32).reshape(-1, 1, 8, 8))
    if config.image_size > images.shape[-1]:
        images = F.interpolate(images, size=config.image_size, mode="bilinear", align_corners=False)
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    is_test[torch.from_numpy(test)] = True
    images = (images - images[~is_test].mean()) / images[~is_test].std()
    targets = torch.from_numpy(labels)
    return ImageDataset((images[~is_test], targets[~is_test]), (images[is_test], targets[is_test]), classes=_CLASSES)


def _read_table() -> np.ndarray:
    """Rows of 64 pixels and a label, from the file scikit-learn carries.

    Read without importing scikit-learn: that takes longer than a short run's training, in every rank.
    """
    spec = importlib.util.find_spec("sklearn")
    if spec is None:
        raise ConfigError("the digits ship inside scikit-learn, which is not installed; run `make setup`")
    return np.loadtxt(Path(spec.submodule_search_locations[0]) / "datasets" / "data" / "digits.csv.gz", delimiter=",")


def _stratified_choice(labels: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """Positions of the test samples: the same fraction of every class, at least one."""
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(labels == c) for c in range(_CLASSES)]
    return np.concatenate(
        [rng.permutation(of_class)[: max(1, round(fraction * len(of_class)))] for of_class in classes]
    )

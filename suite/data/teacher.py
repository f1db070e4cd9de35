"""Regression on what a random network says of random vectors, plus noise."""

import numpy as np
import torch

from suite.config.experiment import TeacherConfig
from suite.data.dataset import ImageDataset

_WIDTH = 16  # of the teacher's hidden layer


def load_teacher(config: TeacherConfig) -> ImageDataset:
    """Standard normal vectors float32 [n, features], targets float32 [n, 1]; the test samples are the training ones.

    Testing on what was trained on is the point: the problem is to minimise the mean over these samples, and its full
    gradient is known.
    """
    rng = np.random.default_rng(config.split_seed)
    vectors = rng.standard_normal((config.samples, config.features))
    inner = rng.standard_normal((config.features, _WIDTH)) / config.features**0.5
    outer = rng.standard_normal((_WIDTH, 1)) / _WIDTH**0.5
    targets = np.tanh(2 * vectors @ inner) @ outer + config.noise * rng.standard_normal((config.samples, 1))
    batch = tuple(torch.from_numpy(values.astype(np.float32)) for values in (vectors, targets))
    return ImageDataset(batch, batch, classes=1)

"""Random images for benchmarks and timings. Nothing about accuracy can be learned from them."""

import numpy as np
import torch

from suite.config.experiment import SyntheticConfig
from suite.data.dataset import Batch, ImageDataset

_TEST_SHARE = 8  # one test image for so many training images: enough to run an evaluation


def load_synthetic(config: SyntheticConfig) -> ImageDataset:
    """Gaussian noise around a mean that belongs to the class, so that a loss can fall a little."""
    rng = np.random.default_rng(config.split_seed)
    means = rng.standard_normal((config.classes, config.channels, 1, 1), np.float32)

    def draw(samples: int) -> Batch:
        labels = rng.integers(config.classes, size=samples)
        images = rng.standard_normal((samples, config.channels, config.image_size, config.image_size), np.float32)
        images += means[labels]
        return torch.from_numpy(images), torch.from_numpy(labels)

    return ImageDataset(draw(config.samples), draw(max(1, config.samples // _TEST_SHARE)), classes=config.classes)

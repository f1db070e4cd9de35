"""scikit-learn's handwritten digits: real scans, and already on every machine that can run the suite."""

import numpy as np
import torch
from torch.nn import functional as F

from suite.config.experiment import DigitsConfig
from suite.data.dataset import ImageDataset


def load_digits(config: DigitsConfig) -> ImageDataset:
    """1,797 grey images of 10 classes, scaled to mean 0 and deviation 1 of the training split.

    The split is stratified by class and fixed by `split_seed`.
    """
    from sklearn.datasets import load_digits as read_digits
    from sklearn.model_selection import train_test_split

    raw = read_digits()
    train, test = train_test_split(
        np.arange(len(raw.target)), test_size=config.test_fraction, random_state=config.split_seed, stratify=raw.target
    )
    images = torch.from_numpy(raw.images).float().unsqueeze(1)
    if config.image_size > images.shape[-1]:
        images = F.interpolate(images, size=config.image_size, mode="bilinear", align_corners=False)
    images = (images - images[train].mean()) / images[train].std()
    labels = torch.from_numpy(raw.target).long()
    return ImageDataset((images[train], labels[train]), (images[test], labels[test]), classes=10)

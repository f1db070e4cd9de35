"""Labelled vectors drawn from a seed: convex problems, small enough to be solved to the end."""

import numpy as np
import torch

from suite.config.problems import GroupedConfig, LabelledConfig
from suite.data.dataset import ImageDataset


def load_labelled(config: LabelledConfig) -> ImageDataset:
    """Vectors float32 [n, features] and labels, -1 or 1, float32 [n], by a standard normal classifier.

    Entries are standard normal, times the feature's scale where there are scales.
    """
    rng = np.random.default_rng(config.split_seed)
    vectors = rng.standard_normal((config.samples, config.features))
    classifier = rng.standard_normal(config.features)
    labels = np.where(vectors @ classifier >= 0, 1.0, -1.0)
    if config.scales is not None:
        small, threshold = config.scales
        scales = rng.uniform(size=config.features)
        vectors *= np.where(scales <= threshold, small * scales, scales)
    if config.nonzeros < 1:
        vectors *= rng.uniform(size=vectors.shape) < config.nonzeros
        labels = np.where(vectors @ classifier >= 0, 1.0, -1.0)  # of what is left of them
    if config.unit_rows:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    labels[rng.uniform(size=config.samples) < config.flipped] *= -1
    batch = (torch.from_numpy(vectors.astype(np.float32)), torch.from_numpy(labels.astype(np.float32)))
    return ImageDataset(batch, batch, classes=2)


def load_grouped(config: GroupedConfig) -> ImageDataset:
    """Standard normal vectors float32 [n, features]; labels, -1 or 1, and groups float32 [n, 2]."""
    rng = np.random.default_rng(config.split_seed)
    vectors = rng.standard_normal((config.samples, config.features))
    classifiers = rng.standard_normal(config.features) + config.spread * rng.standard_normal(
        (config.groups, config.features)
    )
    groups = np.arange(config.samples) % config.groups
    labels = np.where((vectors * classifiers[groups]).sum(axis=1) >= 0, 1.0, -1.0)
    targets = np.stack([labels, groups], axis=1)
    batch = (torch.from_numpy(vectors.astype(np.float32)), torch.from_numpy(targets.astype(np.float32)))
    return ImageDataset(batch, batch, classes=config.groups)

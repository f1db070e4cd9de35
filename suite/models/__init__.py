"""The networks. `build_model` makes one from its settings and the data it will read."""

import torch
from torch import nn

from suite.config.experiment import ExperimentConfig
from suite.data import Dataset
from suite.models.lstm import LSTMLanguageModel
from suite.models.resnet20 import ResNet20


def build_model(config: ExperimentConfig, dataset: Dataset) -> nn.Module:
    """The model with the initial weights of the run's seed: the same on every process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.train.seed)
        if config.model.name == "resnet20":
            return ResNet20(dataset.channels, dataset.classes)
        return LSTMLanguageModel(dataset.classes, config.model)


__all__ = ["LSTMLanguageModel", "ResNet20", "build_model"]

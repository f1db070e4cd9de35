"""The networks. `build_model` makes one from its settings and the data it will read."""

from collections.abc import Callable

import torch
from torch import nn

from suite.config.experiment import ExperimentConfig, ModelConfig
from suite.data import Dataset
from suite.models.lstm import LSTMLanguageModel
from suite.models.resnet20 import ResNet20
from suite.models.resnet50 import resnet50
from suite.models.vgg16 import VGG16

_BUILDERS: dict[str, Callable[[ModelConfig, Dataset], nn.Module]] = {
    "resnet20": lambda settings, dataset: ResNet20(dataset.channels, dataset.classes),
    "vgg16": lambda settings, dataset: VGG16(dataset.channels, dataset.classes),
    "resnet50": lambda settings, dataset: resnet50(dataset.channels, dataset.classes),
    "lstm": lambda settings, dataset: LSTMLanguageModel(dataset.classes, settings),
}


def build_model(config: ExperimentConfig, dataset: Dataset) -> nn.Module:
    """The model with the initial weights of the run's seed: the same on every process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.train.seed)
        return _BUILDERS[config.model.name](config.model, dataset)


__all__ = ["LSTMLanguageModel", "ResNet20", "VGG16", "build_model", "resnet50"]

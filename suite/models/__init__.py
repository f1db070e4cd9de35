"""The networks. `build_model` makes one to train, `describe_model` its shapes alone."""

from collections.abc import Callable

import torch
from torch import nn

from suite.config.experiment import ExperimentConfig, ModelConfig
from suite.data import Dataset
from suite.models.inception_v4 import InceptionV4
from suite.models.linear import Linear, RobustLinear
from suite.models.lstm import LSTMLanguageModel
from suite.models.mlp import MLP
from suite.models.resnet20 import ResNet20
from suite.models.resnet50 import resnet50
from suite.models.saddle import Saddle
from suite.models.vgg16 import VGG16

# From settings, channels of an image (features of a vector) and classes (words of the vocabulary, groups) to a network.
_BUILDERS: dict[str, Callable[[ModelConfig, int, int], nn.Module]] = {
    "resnet20": lambda settings, channels, classes: ResNet20(channels, classes),
    "vgg16": lambda settings, channels, classes: VGG16(channels, classes, settings.width),
    "resnet50": lambda settings, channels, classes: resnet50(channels, classes),
    "inception_v4": lambda settings, channels, classes: InceptionV4(channels, classes),
    "lstm": lambda settings, channels, classes: LSTMLanguageModel(classes, settings),
    "mlp": lambda settings, channels, classes: MLP(channels, settings),
    "linear": lambda settings, channels, classes: Linear(channels, settings),
    "robust_linear": lambda settings, channels, classes: RobustLinear(channels, classes, settings),
    "saddle": lambda settings, channels, classes: Saddle(channels, classes),
}


def build_model(config: ExperimentConfig, dataset: Dataset) -> nn.Module:
    """The model with the initial weights of the run's seed: the same on every process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.train.seed)
        return _BUILDERS[config.model.name](config.model, dataset.channels, dataset.classes)


def describe_model(settings: ModelConfig, channels: int, classes: int) -> nn.Module:
    """The model on the meta device: names and shapes of its parameters, without memory or weights.

    Args:
        settings: of the model.
        channels: of an image; a text model has no use for it.
        classes: of the labels, or words of the vocabulary.
    """
    with torch.device("meta"):
        return _BUILDERS[settings.name](settings, channels, classes)


__all__ = ["InceptionV4", "LSTMLanguageModel", "ResNet20", "VGG16", "build_model", "describe_model", "resnet50"]

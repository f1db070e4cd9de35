"""What can only be refused with data and model at hand, asked before a run folder is touched."""

from fnmatch import fnmatchcase

import torch

from suite.config import ExperimentConfig
from suite.data import load_dataset
from suite.errors import ConfigError
from suite.models import build_model


def check_inputs(config: ExperimentConfig) -> None:
    """Refuse data that is missing or too small, costs of another model, and `layer_density` that names no layer.

    Such a pattern would silently do nothing. The model is only described, not allocated.
    """
    dataset = load_dataset(config)
    patterns = getattr(config.method, "layer_density", {})
    if not patterns and config.costs is None:
        return
    with torch.device("meta"):
        names = [name for name, _ in build_model(config, dataset).named_parameters()]
    if config.costs is not None:
        config.costs.layers.check(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(f"method.layer_density: '{pattern}' matches no layer; the layers are {', '.join(names)}")

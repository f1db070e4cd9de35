"""The typed description of an experiment, validated before anything runs.

`load_config` turns a YAML file or the address of a cell (laptop/digits/lags/0) into an `ExperimentConfig`.
"""

from suite.config.experiment import ExperimentConfig
from suite.config.load import load_config, validate_config

__all__ = ["ExperimentConfig", "load_config", "validate_config"]

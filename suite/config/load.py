"""From a file, a cell's address or a dictionary to a validated configuration; every refusal is one sentence."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from suite.config.experiment import ExperimentConfig
from suite.config.profiles import find_cell
from suite.config.values import apply_overrides, read_yaml, sentence
from suite.errors import ConfigError


def load_config(source: str, overrides: list[str] = ()) -> ExperimentConfig:
    """Load and validate one training run, with `read_config`'s arguments.

    Raises:
        ConfigError: the source cannot be read or describes something impossible.
    """
    return validate_config(read_config(source, overrides))


def read_config(source: str, overrides: list[str] = ()) -> dict[str, Any]:
    """The plain values of one training run, not yet validated.

    Args:
        source: path of a YAML file, or the address PROFILE/EXPERIMENT/METHOD/SEED of a cell in a replication.
        overrides: `a.b=value` strings; the value is read as YAML.

    Raises:
        ConfigError: the source or an override cannot be read.
    """
    path = Path(source)
    if path.is_file():
        values = read_yaml(path)
    elif source.count("/") == 3 and path.suffix not in (".yaml", ".yml"):
        values = find_cell(source).config
    else:
        raise ConfigError(
            f"there is no configuration '{source}'; give a YAML file or an address PROFILE/EXPERIMENT/METHOD/SEED "
            "such as laptop/digits/lags/0"
        )
    return apply_overrides(values, overrides)


def validate_config(values: dict[str, Any]) -> ExperimentConfig:
    """Validate plain values; the first violation becomes a ConfigError of one sentence."""
    try:
        return ExperimentConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(sentence(error)) from error

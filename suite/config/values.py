"""Plain values: reading YAML, laying settings over settings, and wording a refusal."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from suite.config.experiment import variants
from suite.config.strict import nearest
from suite.errors import ConfigError

# The same language either way; libyaml reads hundreds of run folders in seconds instead of minutes.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file's top-level mapping."""
    try:
        values = yaml.load(path.read_text(), _Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        at = f" at line {where.line + 1}" if where else ""
        raise ConfigError(f"{path} is not valid YAML{at}: {getattr(error, 'problem', error)}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a mapping of settings, not {type(values).__name__}")
    return values


def apply_overrides(values: dict[str, Any], overrides: list[str]) -> dict[str, Any]:
    """A copy of nested `values` with each `a.b=value` applied; the keys are checked later, by validation."""
    for override in overrides:
        dotted, equals, text = override.partition("=")
        keys = dotted.split(".")
        if not equals or not all(keys):
            raise ConfigError(f"'{override}' is not an override; write --set section.key=value")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"the value of '{override}' is not valid YAML") from error
        for key in reversed(keys):
            value = {key: value}
        values = merge(values, value)
    return values


def merge(base: Any, over: Any) -> Any:
    """`over` laid on `base`: mappings merge key by key, anything else replaces."""
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: merge(base.get(key), value) for key, value in over.items()}
    return over


def sentence(error: ValidationError) -> str:
    """The first of pydantic's complaints as one sentence: where, what rule, what was given."""
    first = error.errors()[0]
    # pydantic names the chosen variant in the path; users never wrote it.
    tags = {*variants("model"), *variants("dataset")}
    place = ".".join(str(part) for part in first["loc"] if part not in tags)
    if first["type"] == "union_tag_invalid":
        known = [word.strip("' ") for word in first["ctx"]["expected_tags"].split(",")]
        return f"{place}.name: there is no '{first['ctx']['tag']}'; {nearest(first['ctx']['tag'], known)}"
    if first["type"] == "value_error":
        message = first["msg"].removeprefix("Value error, ")
        return f"{place}: {message}" if place else message
    given = first.get("input")
    shown = "" if first["type"] == "missing" or isinstance(given, dict) else f", not {given!r}"
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}{shown}"

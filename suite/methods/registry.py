"""Methods by name."""

from typing import Any

from suite.config.strict import nearest
from suite.methods.base import Method, MethodSettings

INTERFACE_VERSION = 1
METHODS: dict[str, type[Method]] = {}


def register(method: type[Method]) -> type[Method]:
    """Class decorator that makes a method known under its settings' name."""
    name = method.Settings.model_fields["name"].default
    if method.interface_version != INTERFACE_VERSION:
        raise TypeError(
            f"method '{name}' was written for interface {method.interface_version}, this suite has {INTERFACE_VERSION}"
        )
    if name in METHODS:
        raise TypeError(f"two methods are called '{name}'")
    METHODS[name] = method
    return method


def settings_from(value: Any) -> MethodSettings:
    """Validated settings from a mapping with `name`, or the name alone. ValueError in one sentence otherwise."""
    if isinstance(value, MethodSettings):
        return value
    values = {"name": value} if isinstance(value, str) else value
    if not isinstance(values, dict) or "name" not in values:
        raise ValueError(f"a method is a name or a mapping with a name, not {value!r}")
    if values["name"] not in METHODS:
        raise ValueError(f"unknown method '{values['name']}'; {nearest(values['name'], METHODS)}")
    return METHODS[values["name"]].Settings.model_validate(values)

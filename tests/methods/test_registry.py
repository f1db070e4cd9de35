"""A method is found by being there, and a wrong one is refused when it registers."""

from typing import Literal

import pytest

from suite.methods import METHODS, Method, MethodSettings, build_method, settings_from
from suite.methods.registry import register


class OtherSettings(MethodSettings):
    """Of a method that is not registered."""

    name: Literal["other"] = "other"


def test_the_core_methods_are_there():
    assert set(METHODS) == {"dense", "slgs", "lags"}
    for name, method in METHODS.items():
        assert isinstance(build_method(settings_from(name)), method) and method.label and method.__doc__


def test_a_method_of_another_interface_is_refused():
    class Old(Method):
        Settings = OtherSettings
        interface_version = 0

    with pytest.raises(TypeError, match="method 'other' was written for interface 0, this suite has 1"):
        register(Old)
    assert "other" not in METHODS


def test_a_name_is_taken_once():
    class Again(Method):
        Settings = METHODS["lags"].Settings

    with pytest.raises(TypeError, match="two methods are called 'lags'"):
        register(Again)

"""A method is found by being there, and a wrong one is refused when it registers."""

import ast
import inspect
from typing import Literal

import pytest

from suite.methods import METHODS, Method, MethodSettings, build_method, settings_from
from suite.methods.registry import register


class OtherSettings(MethodSettings):
    """Of a method that is not registered."""

    name: Literal["other"] = "other"


NAMES = {
    "dense", "slgs", "lags", "wangni", "mem_sgd", "topk", "gtopk", "hier_avg", "local_adaalter", "rtopk", "local_sgda",
    "acp_sgd", "power_sgd", "adaptive_batch", "dgc",
}  # fmt: skip


def test_the_fifteen_methods_are_there():
    assert set(METHODS) >= NAMES
    for name, method in METHODS.items():
        assert isinstance(build_method(settings_from(name)), method) and method.label and method.__doc__


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_is_one_short_file_that_imports_no_other(name: str):
    source = inspect.getsource(inspect.getmodule(METHODS[name]))
    assert len(source.splitlines()) < 150
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    shared = {f"suite.methods.{file}" for file in ("base", "local", "registry")}
    assert {module for module in imported if module.startswith("suite.methods")} <= shared


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

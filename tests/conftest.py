"""Fixtures every test file may use."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import yaml
from hypothesis import settings

from alone import pytest_runtest_protocol  # noqa: F401 (a hook of pytest)
from helpers import ROOT, require, tiny_settings
from suite.config import ExperimentConfig, validate_config

# How long an example takes depends on what else the machine does; times are for benchmarks.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with a test marked `long` come first, the others in their order."""
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(autouse=True)
def one_thread():
    """Runs repeat bit for bit with one thread a process, and two cores leave no room for more."""
    torch.set_num_threads(1)


@pytest.fixture
def tiny() -> Callable[..., ExperimentConfig]:
    """A configuration that trains in moments: 4 workers, a narrow LSTM on a little text. Sections override."""

    def build(**sections: Any) -> ExperimentConfig:
        values = tiny_settings()
        for name, section in sections.items():
            both_mappings = isinstance(section, dict) and isinstance(values.get(name), dict) and "name" not in section
            values[name] = values[name] | section if both_mappings else section
        return validate_config(values)

    return build


@pytest.fixture
def suite_command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run the command line as a user would, in an empty folder, from outside of the checkout."""

    def run(*arguments: str, cwd: Path = tmp_path, **options: Any) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "suite", *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, **options)

    return run


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[..., Path]:
    """Write the tiny configuration as YAML, with top-level sections replaced."""

    def write(**sections: Any) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(tiny_settings() | sections))
        return path

    return write


def private_slurm_module() -> ModuleType:
    """cluster/slurm/private_slurm.py, which is a script and in no package."""
    spec = importlib.util.spec_from_file_location("private_slurm", ROOT / "cluster" / "slurm" / "private_slurm.py")
    module = sys.modules.setdefault("private_slurm", importlib.util.module_from_spec(spec))
    if not hasattr(module, "PrivateSlurm"):
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def slurm(tmp_path_factory) -> Iterator:
    """Four nodes of four CPUs and four fake GPUs."""
    module = private_slurm_module()
    reason = module.why_not()
    require("slurm", reason is None, f"no private Slurm here: {reason}")
    with module.private_slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running

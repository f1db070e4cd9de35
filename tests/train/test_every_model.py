"""Every model trains an iteration under every method and over every transport, in float32 and in bfloat16."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from every_model_program import methods_for

from helpers import ROOT, require
from suite.config.experiment import WorldConfig, variants
from suite.world.check import horovod_build
from suite.world.launch import launch

PROGRAM = Path(__file__).with_name("every_model_program.py")
PRECISIONS = ("float32", "bfloat16")

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def virtual(tmp_path_factory) -> dict[str, dict]:
    """All cases with both workers in one process; one of its own, so that its memory goes with it."""
    out = tmp_path_factory.mktemp("virtual") / "out.json"
    command = [sys.executable, str(PROGRAM), json.dumps({"transport": "virtual"}), str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(out.read_text())


def test_every_case_takes_a_step(virtual):
    """Dense moves nearly every parameter, sparse methods no more than their workers' entries."""
    assert len(virtual) == sum(len(methods_for(name)) for name in variants("model")) * len(PRECISIONS)
    for name, found in virtual.items():
        assert found["finite"] and found["changed"] > 0, name
        if found["sparse"] and ", wangni, " not in name:  # whose number of entries is random
            assert found["changed"] <= 2 * found["entries"], name
        if ", dense, " in name:
            assert found["changed"] > 0.5 * found["entries"], name


def test_precision_is_not_for_nothing(virtual):
    for name, found in virtual.items():
        if name.endswith("float32"):
            other = virtual[name.replace("float32", "bfloat16")]
            assert found["parameters"] != other["parameters"], name


@pytest.mark.parametrize("transport", ["torch", pytest.param("horovod", marks=pytest.mark.horovod)])
def test_two_processes_take_the_same_step(virtual, tmp_path, transport: str):
    if transport == "horovod":
        build = horovod_build()
        require("horovod", "gloo" in build.controllers, f"Horovod is not here ({build.reason})")
    world = {"workers": 2, "processes": 2, "transport": transport, "deterministic": True}
    out = tmp_path / "out.json"
    launch(WorldConfig(**world), [sys.executable, str(PROGRAM), json.dumps(world), str(out)], tmp_path / "logs")
    found = json.loads(out.read_text())
    assert found.keys() == virtual.keys()
    for name in virtual:
        assert found[name] == virtual[name], name

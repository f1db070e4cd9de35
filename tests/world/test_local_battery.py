"""Local-update methods and sums in groups have the same bits in every placement."""

import json
import sys
from pathlib import Path

import pytest
from local_rank_program import WORKERS
from local_rank_program import main as run_here

from helpers import require
from suite.config.experiment import WorldConfig
from suite.world.check import horovod_build
from suite.world.launch import launch

PROGRAM = Path(__file__).with_name("local_rank_program.py")


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> dict:
    out = tmp_path_factory.mktemp("virtual") / "out.json"
    run_here({"transport": "virtual"}, out)
    return json.loads(out.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("transport, processes", [("torch", 2), ("torch", 4), ("horovod", 2), ("horovod", 4)])
def test_same_bits_in_every_placement(reference, tmp_path, transport: str, processes: int):
    if transport == "horovod":
        build = horovod_build()
        require("horovod", "gloo" in build.controllers, f"Horovod is not here ({build.reason})")
    world = {"workers": WORKERS, "processes": processes, "transport": transport, "deterministic": True}
    out = tmp_path / "out.json"
    launch(WorldConfig(**world), [sys.executable, str(PROGRAM), json.dumps(world), str(out)], tmp_path / "logs")
    found = json.loads(out.read_text())
    assert found.keys() == reference.keys()
    for name in reference:
        assert found[name] == reference[name], name


@pytest.mark.slow
def test_own_order_agrees_among_processes(tmp_path):
    """Without the promise transports add in their own order; the program checks that all processes end alike."""
    world = {"workers": WORKERS, "processes": 4, "transport": "torch", "deterministic": False}
    out = tmp_path / "out.json"
    launch(WorldConfig(**world), [sys.executable, str(PROGRAM), json.dumps(world), str(out)], tmp_path / "logs")
    assert json.loads(out.read_text())

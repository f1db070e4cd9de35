"""Every method over every transport and placement of 16 workers: the same bits everywhere."""

import json
import os
import sys
from pathlib import Path

import pytest
from rank_program import main as run_here
from rank_program import settings
from support_matrix import PLACEMENTS, VIRTUAL, WIDEST, column, write_columns

from helpers import require
from suite.config.experiment import WorldConfig
from suite.world.check import horovod_build
from suite.world.launch import launch

PROGRAM = Path(__file__).with_name("rank_program.py")

pytestmark = [pytest.mark.slow, pytest.mark.long]


def need(transport: str, controller: str) -> None:
    if transport == "horovod":
        build = horovod_build()
        tool = "mpi" if controller == "mpi" else "horovod"
        require(
            tool,
            controller in build.controllers,
            f"Horovod with {controller} is not here ({build.reason or 'not built in'})",
        )


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> dict:
    """All cases in one process: the virtual world."""
    out = tmp_path_factory.mktemp("virtual") / "out.json"
    run_here({"transport": "virtual"}, out)
    return json.loads(out.read_text())


def run_ranks(world: dict, folder: Path, *cases: str) -> dict:
    """What rank 0 found in these cases, or in all."""
    out = folder / "out.json"
    launch(WorldConfig(**world), [sys.executable, str(PROGRAM), json.dumps(world), str(out), *cases], folder / "logs")
    return json.loads(out.read_text())


@pytest.fixture
def passed(request):
    """To be called with columns of docs/methods.md when all methods have passed there."""
    if request.config.getoption("--write-methods", default=False):
        return lambda *names: write_columns(settings({}), *names)
    return lambda *names: None


@pytest.mark.parametrize("transport, controller, processes", PLACEMENTS)
def test_same_bits_in_every_placement(reference, passed, tmp_path, transport: str, controller: str, processes: int):
    need(transport, controller)
    world = {
        "workers": 16,
        "processes": processes,
        "transport": transport,
        "controller": controller,
        "deterministic": True,
    }
    found = run_ranks(world, tmp_path)
    assert found.keys() == reference.keys()
    for name in reference:
        assert found[name] == reference[name], name
    for other in ("a message a layer", "one message", "no overlap", "compact"):
        assert found["lags"]["parameters"] == found[f"lags, {other}"]["parameters"], other
    assert found["acp_sgd"]["parameters"] == found["acp_sgd, a message a layer"]["parameters"]
    assert found["lags, compact"]["bytes"] < found["lags"]["bytes"]
    assert found["lags, bfloat16"]["parameters"] != found["lags"]["parameters"]
    assert found["dense"]["parameters"] == found["dense, a message a layer"]["parameters"]
    passed(VIRTUAL, column(transport, controller, processes))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="16 processes on one core take too long")
def test_a_process_a_worker(reference, passed, tmp_path):
    transport, _, processes = WIDEST
    world = {"workers": 16, "processes": processes, "transport": transport, "deterministic": True}
    assert run_ranks(world, tmp_path) == reference
    passed(column(*WIDEST))


def test_dense_without_the_promise_agrees_to_rounding_only(reference, tmp_path):
    """The all-reduce of a transport adds in its own order; sparse exchanges never do."""
    sparse = ("slgs", "lags", "lags on images", "dgc", "wangni", "topk", "gtopk", "rtopk", "mem_sgd")
    world = {"workers": 16, "processes": 4, "transport": "torch", "deterministic": False}
    found = run_ranks(world, tmp_path, "dense", *sparse)
    for name in sparse:
        assert found[name]["parameters"] == reference[name]["parameters"]
    assert found["dense"]["bytes"] == pytest.approx(reference["dense"]["bytes"])

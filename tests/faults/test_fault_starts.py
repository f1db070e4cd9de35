"""Ranks that do not mean the same run, and a start where something is in the way."""

import os
import re
import socket

import psutil
from fault_runs import ENDLESS, VIRTUAL
from fault_table import fault

from helpers import ROOT, require
from suite.config.experiment import WorldConfig
from suite.record import RunFolder
from suite.world.check import horovod_build
from suite.world.ranks import rank_environments


def refused(attempt, row, kind: str, pattern: str) -> None:
    """All ranks say the same before the first iteration."""
    run = attempt()
    run.start(fault=(kind, 1, 0))
    with row.timed():
        run.end(1)
    row.seen = RunFolder(run.out).read_failure()["sentence"]
    assert re.search(pattern, row.seen), row.seen
    assert row.seen in run.output and not list(run.out.glob("checkpoint/step-*"))
    row.lost = "nothing (not begun)"


@fault("parameters in another order on one rank", "refused before the first iteration: which rank, which parameter")
def test_another_order(attempt, row):
    refused(attempt, row, "order", r"parameter 1 is .* on rank \d, but .* on rank \d; give all of them the same code")


@fault("another k on one rank", "refused before the first iteration: which rank, which layer, which k")
def test_another_k(attempt, row):
    refused(attempt, row, "density", r"segment 1 is \S+ \(k = \d+ of \d+ entries\) on rank \d, but \S+ \(k = \d+ of")


@fault(
    "fewer samples on one rank", "refused before the first iteration: ranks with other numbers of iterations would hang"
)
def test_fewer_samples(attempt, row):
    refused(attempt, row, "samples", r"the number of training samples is \d+ on rank \d, but \d+ on rank \d")


@fault("two trainings in one run folder", "the second is refused, the first goes on")
def test_two_trainings(attempt, row, loses_nothing):
    first, second = attempt(), attempt()
    first.start()
    first.wait_for("config.yaml")
    second.start()
    with row.timed():
        row.seen = second.end(1, shared=True)
    assert row.seen == "another process is training in RUN; wait for it or choose another --out"
    first.end(0)
    row.lost = loses_nothing(first.out)


@fault("a lock file left behind by kill -9", "locks end with their process: the run goes on without any clean-up")
def test_a_stale_lock(attempt, row, loses_nothing):
    run = attempt(world=VIRTUAL)
    run.start(ENDLESS)
    run.wait_for()
    run.process.kill()
    with row.timed():
        run.process.communicate(timeout=30)
    assert (run.out / ".lock").exists() and not RunFolder(run.out).is_claimed()
    row.seen = "the lock file is there and holds nobody"
    row.lost = loses_nothing(run.out)


@fault("the port of the rendezvous is taken", "another one is found; none is fixed")
def test_a_taken_port(row, monkeypatch):
    build = horovod_build()
    require("horovod", "gloo" in build.controllers, f"Horovod with Gloo is not here ({build.reason})")
    import horovod.runner.util.network as network

    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        number = taken.getsockname()[1]
        # Horovod tries one port after the other, from a random one above 1024 on: here from the one that is taken.
        monkeypatch.setattr(network.random, "randrange", lambda *_: number - 1024)
        with row.timed(), rank_environments(WorldConfig(workers=2, processes=2, transport="horovod")) as environments:
            port = int(environments[0]["HOROVOD_GLOO_RENDEZVOUS_PORT"])
            listening = {c.laddr.port for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN}
    assert port != number and {port, number} <= listening
    row.seen, row.lost = "the ranks are told of a free port", "nothing (not begun)"


@fault(
    "Horovod is asked for and does not load", "refused before a folder is touched, with the two ways out; exit code 2"
)
def test_no_horovod(attempt, row, tmp_path):
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "horovod.py").write_text("raise ImportError('libhorovod is broken')")
    run = attempt()
    env = os.environ | {"PYTHONPATH": f"{tmp_path / 'shadow'}:{ROOT}"}
    run.start("world.transport=horovod", env=env)
    with row.timed():
        row.seen = run.end(2)
    assert "Horovod does not load" in row.seen and "set world.transport to torch" in row.seen
    assert not run.out.exists()
    row.lost = "nothing (not begun)"

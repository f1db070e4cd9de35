"""Ranks that raise, die, hang or compute nonsense in mid-run."""

import re
import signal
import time

import pandas as pd
from fault_runs import ENDLESS, VIRTUAL
from fault_table import fault

from helpers import require
from suite.record import RunFolder
from suite.world.check import horovod_build


@fault("a rank raises an exception", "the others are ended, the exception is shown, exit code 1")
def test_a_rank_raises(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(fault=("raise", 1, 30))
    run.wait_for()
    with row.timed():
        row.seen = run.end(1)
    assert row.seen.startswith("rank 1 ended with exit code 1 and all ranks were ended")
    assert "RuntimeError: broken on purpose" in run.output
    assert state_of(run.out).state == "failed" and "RuntimeError: broken" in state_of(run.out).reason
    row.lost = loses_nothing(run.out)


@fault("kill -9 of one of four Horovod ranks", "all are gone, the rank and the signal are named, exit code 1")
def test_a_rank_is_killed(attempt, row, loses_nothing):
    build = horovod_build()
    require("horovod", "gloo" in build.controllers, f"Horovod with Gloo is not here ({build.reason})")
    run = attempt()
    run.start(ENDLESS, "world.transport=horovod", "world.processes=4")
    run.wait_for()
    run.ranks()[2].send_signal(signal.SIGKILL)
    with row.timed():
        row.seen = run.end(1)
    assert row.seen == "rank 2 was killed by SIGKILL and all ranks were ended" and row.seconds < 60
    row.lost = loses_nothing(run.out)


@fault("a rank is stopped (SIGSTOP), `train.stall_limit=4`", "the run ends and names the rank, also a stopped one")
def test_a_rank_is_stopped(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(ENDLESS, "train.stall_limit=4")
    run.wait_for()
    run.ranks()[1].send_signal(signal.SIGSTOP)
    with row.timed():
        run.end(1)
    row.seen = RunFolder(run.out).read_failure()["sentence"]
    assert re.match(r"nothing moved for 4 s \(train.stall_limit\): rank 1 does not answer", row.seen)
    assert row.seen in run.output and state_of(run.out).state == "timed out" and state_of(run.out).iteration > 20
    row.lost = loses_nothing(run.out)


@fault("a rank loops for ever, `train.stall_limit=4`", "the run ends, names the rank and shows where it is")
def test_a_rank_loops(attempt, row, loses_nothing):
    run = attempt()
    run.start("train.stall_limit=4", fault=("loop", 1, 30))
    run.wait_for()
    with row.timed():
        run.end(1)
    row.seen = RunFolder(run.out).read_failure()["sentence"]
    assert re.search(r"rank 1 computed in iteration 30\b", row.seen)
    row.lost = loses_nothing(run.out)


@fault("SIGTERM to one rank only", "all stop at the same iteration with a checkpoint, exit code 143")
def test_one_rank_is_asked_to_stop(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(ENDLESS)
    run.wait_for()
    run.ranks()[1].send_signal(signal.SIGTERM)
    with row.timed():
        row.seen = run.end(128 + signal.SIGTERM)
    assert re.match(r"stopped by signal at iteration \d+ of .*the same command continues from it", row.seen)
    assert state_of(run.out).state == "stopped"
    stopped = int(re.search(r"iteration (\d+)", row.seen)[1])
    assert (run.out / f"checkpoint/step-{stopped:010d}/manifest.json").exists()
    row.lost = loses_nothing(run.out)


@fault("kill -9 of the process that started the ranks", "no rank is left behind; the cell counts as stopped")
def test_the_launcher_is_killed(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(ENDLESS)
    run.wait_for()
    assert len(run.ranks()) == 2
    run.process.kill()
    with row.timed():
        deadline = time.monotonic() + 10
        while run.ranks() and time.monotonic() < deadline:
            time.sleep(0.02)
    run.process.wait(10)  # a dying process may hold the run's lock for longer than its ranks live
    assert not run.ranks()
    state = state_of(run.out)
    row.seen = f"state “{state.state}”: {state.reason}"
    assert state.state == "stopped"
    row.lost = loses_nothing(run.out)


@fault("a gradient with a NaN on one rank", "all ranks skip that iteration together, residuals stay, the run goes on")
def test_one_nan(attempt, row):
    _skipped(attempt, row, "nan")


@fault(
    "a gradient with an infinity on one rank", "all ranks skip that iteration together, residuals stay, the run goes on"
)
def test_one_infinity(attempt, row):
    _skipped(attempt, row, "inf")


def _skipped(attempt, row, value: str) -> None:
    """The same fault in one process gives the same bits: nobody but the faulty iteration was touched."""
    sides = []
    for name, rank, world in (("ranks", 1, {}), ("virtual", 0, VIRTUAL)):
        run = attempt(name, world=world, train={"max_iterations": 40})
        run.start(fault=(value, rank, 30))
        with row.timed():
            run.end(0)
        sides.append(RunFolder(run.out).read_summary())
        rows = pd.read_parquet(run.out / "iterations.parquet")
        assert list(rows.loc[rows["skipped"], "iteration"]) == [30]
    assert sides[0]["parameters_sha256"] == sides[1]["parameters_sha256"] and sides[0]["skipped"] == 1
    row.seconds, row.seen = 0.0, "iteration 30 of 40 skipped on both ranks, as in one process, to the bit"
    row.lost = "the iteration"


@fault("NaN in every gradient of a rank from iteration 30 on", "three in a row end the run, which counts as diverged")
def test_nan_for_good(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(fault=("nan for good", 1, 30))
    run.wait_for()
    with row.timed():
        run.end(1)
    state = state_of(run.out)
    row.seen = state.reason
    assert state.state == "diverged" and state.iteration == 32 and "3 iterations in a row, the last was 32" in row.seen
    row.lost = loses_nothing(run.out)

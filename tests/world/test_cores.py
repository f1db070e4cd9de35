"""Which cores the processes of a local run get."""

import os

import pytest

from suite.config.experiment import WorldConfig
from suite.world.world import share_cores


@pytest.mark.parametrize(
    "processes, threads, local_rank, expected",
    [
        (4, 1, 0, {3}),
        (4, 1, 1, {5}),
        (4, 1, 2, {3}),
        (2, 2, 1, {3, 5}),
        (3, 1, 2, {3}),
        (2, 1, 1, None),  # as many cores as threads: left to the system
    ],
)
def test_cores_are_dealt_out_where_they_are_few(monkeypatch, processes: int, threads: int, local_rank: int, expected):
    taken: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: taken.append(cores))
    monkeypatch.setenv("SUITE_LAUNCHER", "1")
    share_cores(WorldConfig(workers=12, processes=processes, transport="torch", threads=threads), local_rank)
    assert taken == ([] if expected is None else [expected])


def test_a_process_that_nobody_launched_stays_where_it_is(monkeypatch):
    monkeypatch.delenv("SUITE_LAUNCHER", raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: pytest.fail("moved"))
    share_cores(WorldConfig(workers=16, processes=16, transport="torch"), 0)

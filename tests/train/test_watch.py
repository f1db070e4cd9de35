"""When a rank's watch calls a run stalled, and whom it names; time is the test's."""

from pathlib import Path

import pytest

from suite.train.watch import StallWatch

LIMIT = 80.0


@pytest.fixture
def ranks(tmp_path: Path) -> list[StallWatch]:
    """The watches of three ranks, which look when the test says so."""
    return [StallWatch(tmp_path, rank, 3, LIMIT) for rank in range(3)]


def look(watches: list[StallWatch], until: float, since: float = 0.0, step: float = 5.0) -> list[int]:
    """Let watches look every `step` seconds; the ranks that call the run stalled at the end."""
    stalled, now = [], since
    while now <= until:
        stalled = [watch.rank for watch in watches if watch.look(now)]
        now += step
    return stalled


def test_ranks_that_get_on_are_left_alone(ranks):
    for now in range(0, 1000, 5):
        for watch in ranks:
            watch.beat("computed")
        assert not any(watch.look(now) for watch in ranks)


def test_all_that_wait_name_the_one_that_computes(ranks):
    ranks[0].beat("waited", waiting=True)
    ranks[1].beat("computed in iteration 7")
    ranks[2].beat("waited", waiting=True)
    assert look(ranks, until=60) == [] and set(look(ranks, until=200, since=65)) == {0, 1, 2}
    for watch in ranks:
        assert "80 s (train.stall_limit): rank 1 computed in iteration 7" in watch.sentence(200)
        assert "rank 2" not in watch.sentence(200).partition(", while")[0]


def test_a_rank_that_stops_answering_is_named(ranks):
    for watch in ranks:
        watch.beat("waited in iteration 7", waiting=True)
    look(ranks, until=20)
    assert set(look(ranks[:2], until=150, since=25)) == {0, 1}
    assert "rank 2 does not answer (stopped, or its host is gone; it last waited in iteration 7)" in ranks[0].sentence(
        150
    )


def test_a_rank_that_never_came_is_named(ranks):
    ranks[0].beat("waited for all to start", waiting=True)
    assert look(ranks[:1], until=100) == [0]
    assert "rank 1 has not started and rank 2 has not started" in ranks[0].sentence(100)


def test_a_patient_step_may_take_long_while_its_rank_answers(ranks):
    ranks[0].beat("tested", patient=True)
    for watch in ranks[1:]:
        watch.beat("waited", waiting=True)
    assert look(ranks, until=1000) == []
    assert look(ranks[1:], until=1200, since=1005) == [1, 2]  # its host is gone


def test_a_suspended_job_is_not_a_stalled_one(ranks):
    for watch in ranks:
        watch.beat("waited", waiting=True)
    look(ranks, until=20)
    assert look(ranks, until=3600, since=3600) == []


def test_notes_of_an_earlier_attempt_stop_nobody_for_long(ranks, tmp_path):
    for watch in ranks:
        watch.beat("waited", waiting=True)
    look(ranks, until=20)
    again = StallWatch(tmp_path, 0, 3, LIMIT)
    again.beat("waited", waiting=True)
    assert look([again], until=1100, since=1000) == [0]

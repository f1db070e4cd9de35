"""The phase clock: inner phases are not charged twice, and messages on their way are watched."""

import time

import pytest

from suite.measure import ArrivalWatch, PhaseClock, phases


def test_an_inner_phase_is_not_charged_to_the_outer_one(monkeypatch):
    now = iter([0.0, 1.0, 3.0, 8.0, 10.0, 11.0])  # restart, outer in, inner in, inner out, outer out, row
    monkeypatch.setattr(phases.time, "monotonic", lambda: next(now))
    clock = PhaseClock()
    clock.restart = lambda tracing: None
    clock.tracing = True
    with clock.phase("compute", traced_as="backward"), clock.phase("select", "layer"):
        pass
    assert clock.seconds["compute"] == 4 and clock.seconds["select"] == 5
    assert [(e["phase"], e["start"], e["end"]) for e in clock.events] == [("select", 3, 8), ("backward", 1, 10)]
    row = clock.row()
    assert row["iteration_s"] == 11 and row["other_s"] == 2


def test_what_is_traced_as_nothing_is_not_noted():
    clock = PhaseClock()
    clock.restart(tracing=True)
    with clock.phase("compute", traced_as=""):
        pass
    assert clock.events == []


def test_a_message_is_on_its_way_until_it_is_seen_to_arrive():
    clock, arrived = PhaseClock(), []
    clock.restart(tracing=True)
    watch = ArrivalWatch(clock)
    wait = watch.started("layer", lambda: bool(arrived))
    time.sleep(0.02)
    assert clock.events == []
    arrived.append(True)
    wait()
    watch.close()
    (event,) = clock.events
    assert event["phase"] == "exchange" and event["label"] == "layer"
    assert event["end"] - event["start"] == pytest.approx(0.02, abs=0.2) and event["end"] > event["start"] + 0.015

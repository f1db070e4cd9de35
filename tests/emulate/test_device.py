"""A slept device keeps to its schedule; time is made up, so that the tests are exact."""

from types import SimpleNamespace

import pytest
import torch

from suite.compress import Accumulation, TopK
from suite.emulate import device as module
from suite.emulate.device import Device, MeasuredSelection, SleptSelection
from suite.plan import Layout, layer_wise


class Time:
    """A clock that only sleeping and working move; every sleep overshoots."""

    def __init__(self, overshoot: float):
        self.now, self.worked, self.overshoot = 100.0, 0.0, overshoot

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.worked

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds + self.overshoot

    def work(self, seconds: float, waiting: float = 0.0) -> None:
        self.now, self.worked = self.now + seconds + waiting, self.worked + seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Time(overshoot=0.25)
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_overshoots_do_not_add_up(clock):
    device = Device(stretch=10)
    began = device.start()
    for _ in range(8):
        device.compute(0.1)
    assert clock.now - began == pytest.approx(8 * 0.1 * 10 + 0.25)


def test_real_work_in_between_is_time_of_the_device(clock):
    device = Device(stretch=10)
    began = device.start()
    for _ in range(4):
        device.compute(0.1)
        clock.work(0.5)
    assert clock.now - began == pytest.approx(4 * 1.0 + 4 * 0.5 + 0.25)


def selecting() -> tuple[Accumulation, object]:
    layout = Layout(("a", "b"), (6, 4))
    accumulation = Accumulation(layout, torch.zeros(10), None)
    accumulation.gradients = [torch.arange(6.0), torch.arange(4.0)]
    return accumulation, layer_wise(layout, lambda name: 0.5).merged().messages[0]


def test_a_slept_selection_is_made_once_and_takes_its_time_always(clock):
    accumulation, message = selecting()
    calls = []
    inner = TopK()
    counting = SimpleNamespace(compress=lambda *a: (calls.append(1), inner.compress(*a))[1], init=inner.init)
    slept = SleptSelection(counting, device := Device(stretch=10), {message.name: 0.2})
    began = device.start()
    first, _ = slept.compress(accumulation, message, {}, torch.Generator())
    again, _ = slept.compress(accumulation, message, {}, torch.Generator())
    assert again is first and len(calls) == 1 and first.values.tolist() == [3, 4, 5, 2, 3]
    assert clock.now - began == pytest.approx(2 * 0.2 * 10 + 0.25)


def test_a_measured_selection_stretches_processor_time(clock):
    """A selection that computes for 0.3 s and waits 0.4 s for a core takes 0.3 s on a host of its own."""
    accumulation, message = selecting()
    inner = TopK()
    busy = SimpleNamespace(compress=lambda *a: (clock.work(0.3, waiting=0.4), inner.compress(*a))[1], init=inner.init)
    began = clock.now
    MeasuredSelection(busy, Device(stretch=10)).compress(accumulation, message, {}, torch.Generator())
    assert clock.now - began == pytest.approx(0.3 * 10 + 0.25)

"""Costs a run measures on itself."""

import pytest
import torch

from suite.config.experiment import WorldConfig
from suite.plan import Layout
from suite.train import costs
from suite.train.costs import ITERATIONS, CostMeter
from suite.train.trace import TRACED_ITERATION
from suite.world import World
from suite.world.transports import VirtualTransport
from training import trainer


def test_times_between_gradients_become_layers(monkeypatch):
    """Two tensors of a module appear together, last one last; selection in between is not back-propagation."""
    now = iter(100.0 + 10 * i for i in range(ITERATIONS))
    monkeypatch.setattr(costs.time, "monotonic", lambda: next(now))
    meter = CostMeter(Layout(("a.weight", "a.bias", "b"), (4, 2, 3)))
    for i in range(ITERATIONS):
        began = 100.0 + 10 * i
        meter.iteration_begins()
        meter.backward_begins(began + 1)
        meter.gradient(2, began + 1.5, began + 1.75)  # b: 0.5 s, then 0.25 s of selection
        meter.gradient(0, began + 2.75, began + 2.8)  # 1 s for both tensors of a
        meter.gradient(1, began + 2.8, began + 2.85)
        assert meter.iteration_ends() == (i == ITERATIONS - 1)
    monkeypatch.undo()
    found = meter.costs(World(WorldConfig(workers=2), VirtualTransport(), torch.device("cpu")))
    assert found.layers.forward == pytest.approx(1)
    by_name = {layer.name: (layer.backward, layer.select) for layer in found.layers.layers}
    assert by_name["b"] == pytest.approx((0.5, 0.25))
    # A plan takes the bias before the weight, so the bias bears what is waited for.
    assert by_name["a.bias"] == pytest.approx((1.0, 0.05)) and by_name["a.weight"] == pytest.approx((0.0, 0.05))
    assert found.network.workers == 2 and found.network.all_gather.start >= 0


def test_where_nobody_tells_back_propagation_begins_with_its_first_gradient():
    meter = CostMeter(Layout(("a", "b"), (1, 1)))
    meter.iteration_begins()
    meter.gradient(1, meter._began + 2, meter._began + 3)
    meter.gradient(0, meter._began + 5, meter._began + 6)
    assert meter._forward == [pytest.approx(2)] and list(meter._ready[0]) == [pytest.approx(2), 0]


def test_measuring_sends_no_gradients():
    world = World(WorldConfig(workers=2), VirtualTransport(), torch.device("cpu"))
    meter = CostMeter(Layout(("a",), (1,)))
    meter.iteration_begins()
    meter.gradient(0, meter._began, meter._began)
    meter.costs(world)
    assert world.bytes_sent == 0


def test_processes_agree_on_when_to_measure_even_if_one_saw_nothing():
    """A step without a back-propagation, as in broadcasting an optimiser's state, must not part the processes."""
    meter = CostMeter(Layout(("a",), (1,)))
    for number in range(1, 2 * ITERATIONS + 1):
        meter.iteration_begins()
        assert meter.iteration_ends() == (number % ITERATIONS == 0)
    assert meter.costs(World(WorldConfig(workers=2), VirtualTransport(), torch.device("cpu"))) is None


def test_a_gpu_is_waited_for_in_the_iteration_that_is_traced(tiny, tmp_path, monkeypatch):
    """Its calls return before it has done anything; other iterations are not held up."""
    run = trainer(tiny(train={"max_iterations": TRACED_ITERATION + 1}), tmp_path)
    run.exchange._on_gpu, waited = True, []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(run.iteration))
    run.run()
    assert set(waited) == {TRACED_ITERATION} and len(waited) >= len(run.flat.parameters) * len(run.workers)

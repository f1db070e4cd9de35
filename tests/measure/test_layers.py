"""Times of layers add up, stand in the model's order, and survive the way into a configuration."""

import time
from contextlib import contextmanager

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from suite.config.costs import LayerCosts
from suite.measure.layers import _ready, measure_layers
from suite.world import Worker
from suite.world.worker import FlatParameters


class Slow(torch.autograd.Function):
    """The identity, whose backward takes its time."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        time.sleep(ctx.seconds)
        return grad, None


class Chain(nn.Module):
    """Two linear layers; the first one's gradient arrives late; a third layer is never used."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(Slow.apply(self.first(x), 0.05))


def test_a_layer_pays_for_the_time_until_its_gradient():
    flat = FlatParameters(Chain())
    worker, seen = Worker(0, 0, flat, with_residual=True), []

    @contextmanager
    def loss(number: int):
        seen.append(number)
        with worker.computing() as model:
            yield model(torch.randn(3, 4)).square().sum()

    parameters = dict(zip(flat.names, flat.parameters, strict=True))
    costs = measure_layers(parameters, worker, loss, density=0.1, batches=3, source="here")
    assert seen == list(range(6)), "three batches to warm up"
    assert [(layer.name, layer.size) for layer in costs.layers] == list(zip(flat.names, flat.sizes, strict=True))
    assert costs.source == "here"
    backward = {layer.name: layer.backward for layer in costs.layers}
    # The bias is the tensor of its module that a plan takes first.
    assert backward["first.bias"] + backward["first.weight"] >= 0.05
    assert backward["first.bias"] > 0.05 - 0.01
    assert backward["second.bias"] + backward["second.weight"] < 0.05
    assert backward["unused.weight"] == backward["unused.bias"] == 0
    select = {layer.name: layer.select for layer in costs.layers}
    assert select["unused.weight"] == 0 and select["first.weight"] > 0
    assert not any(parameter._post_accumulate_grad_hooks for parameter in flat.parameters)


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=9))
def test_ready_times_ascend_towards_the_first_tensor(moments: list[float | None]):
    given_ = {i: moment for i, moment in enumerate(moments) if moment is not None}
    ready = _ready(given_, end=1.0, count=len(moments))
    assert len(ready) == len(moments) and ready[0] == 1.0
    assert ready == sorted(ready, reverse=True)
    for i, moment in given_.items():
        assert ready[i] >= moment


@pytest.mark.slow
def test_the_file_goes_into_a_configuration(suite_command, config_file, tmp_path):
    out = tmp_path / "costs" / "layers.yaml"
    result = suite_command("measure", "layers", config_file(), "--batches", 2, "--out", out)
    assert result.returncode == 0, result.stderr
    assert "decoder.weight" in result.stdout and "density 0.05" in result.stdout.replace("\n", " ")
    costs = LayerCosts.model_validate(yaml.safe_load(out.read_text()))
    assert costs.backward > 0 and costs.select > 0 and costs.forward > 0 and all(of.size for of in costs.layers)
    assert len(out.read_text().splitlines()) < len(costs.layers) + 5, "a line a layer"
    line = {"start": 1e-4, "per_byte": 1e-9}
    network = {"workers": 4, "all_gather": line, "all_reduce": line}
    config = config_file(costs={"layers": str(out), "network": network})
    result = suite_command("plan", config)
    assert result.returncode == 0, result.stderr


def test_a_method_that_needs_costs_can_be_measured_for(suite_command, config_file):
    config = config_file(method={"name": "lags", "messages": "merged"})
    result = suite_command("measure", "layers", config, "--batches", 1)
    assert result.returncode == 0, result.stderr

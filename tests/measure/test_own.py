"""Somebody else's model is measured as it is, and what cannot be is refused in one sentence."""

import itertools
import sys
from pathlib import Path

import pytest

from suite.errors import ConfigError
from suite.measure.own import measure_own

HEAD = """
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.frozen, self.last = nn.Linear(6, 5), nn.Linear(5, 5), nn.Linear(5, 3)
        self.frozen.requires_grad_(False)

    def forward(self, x, scale=1.0):
        return {"labels": torch.zeros(3, dtype=torch.long), "logits": [self.last(self.frozen(self.first(x))) * scale]}

x = torch.randn(4, 6)
"""
_names = (f"own_model_{number}" for number in itertools.count())


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module in the current folder whose function `example` has this body; returns its import path."""
    monkeypatch.chdir(tmp_path)
    written = []

    def write(body: str, head: str = HEAD) -> str:
        name = next(_names)
        (tmp_path / f"{name}.py").write_text(f"{head}\ndef example():\n    {body}\n")
        written.append(name)
        return f"{name}:example"

    yield write
    for name in written:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "body",
    [
        "return Pair(), x",
        "return Pair(), (x, 2.0)",
        "return Pair(), {'x': x, 'scale': 0.5}",
        "return Pair(), x, lambda output: output['logits'][0].square().sum()",
    ],
    ids=["tensor", "tuple", "mapping", "loss"],
)
def test_a_batch_in_any_form(module, body):
    seen = []
    costs = measure_own(module(body), 0.5, 2, lambda batches: seen.append(len(batches)) or batches)
    assert [(layer.name, layer.size) for layer in costs.layers] == [
        ("first.weight", 30), ("first.bias", 5), ("last.weight", 15), ("last.bias", 3),
    ], "what is frozen has no gradient to exchange"  # fmt: skip
    assert costs.forward > 0 and costs.backward > 0 and costs.select > 0 and seen == [5]
    assert "Pair of own_model" in costs.source and "density 0.5" in costs.source


def test_the_module_is_left_as_it_was(module):
    path = module("return MODEL.eval(), x", head=HEAD + "MODEL = Pair()\n")
    measure_own(path, 0.5, 1)
    model = sys.modules[path.partition(":")[0]].MODEL
    assert not model.training and not any(p._post_accumulate_grad_hooks for p in model.parameters())
    assert str(Path.cwd()) not in sys.path


@pytest.mark.parametrize(
    "body, message",
    [
        ("return Pair()", "returns a Pair; it must return .module, batch. or .module, batch, loss."),
        ("return x, Pair()", "returns a tuple of 2 starting with a Tensor"),
        ("return None", "returns None"),
        ("return Pair(), x, 3", "returns a int as its third item"),
        ("raise KeyError('data')", "fails .KeyError: 'data'."),
        ("return nn.Flatten(), x", "has no parameters to train"),
        ("return Pair().requires_grad_(False), x", "has no parameters to train"),
        ("return Pair().double(), x.double()", "parameter 'first.weight' is float64, and selection takes float32"),
        ("return Pair().to('meta'), x", "must lie on one device, not on meta"),
        ("return Pair(), torch.randn(4, 7)", "the batch does not go through the module .RuntimeError: mat1"),
        ("return Pair(), x, lambda output: 1 / 0", "the loss cannot be computed .ZeroDivisionError"),
        ("return Pair(), x, lambda output: output['logits'][0]", "the loss must be one number that depends"),
        ("return Pair(), x, lambda output: 3.0", "the loss must be one number that depends"),
        (
            "return nn.Sequential(nn.Linear(6, 2), nn.Threshold(0, 0)), x, lambda o: o.sum().detach()",
            "the loss must be",
        ),
        ("return nn.Embedding(5, 2, sparse=True), torch.arange(3)", "the gradient of 'weight' is sparse already"),
    ],
)
def test_refusals(module, body, message):
    path = module(body)
    with pytest.raises(ConfigError, match=message) as refused:
        measure_own(path, 0.5, 1)
    assert "\n" not in str(refused.value) and path.partition(":")[0] in str(refused.value)


def test_an_output_without_a_floating_tensor_is_refused(module):
    head = HEAD + "class Whole(Pair):\n    def forward(self, x):\n        return [super().forward(x)['labels']]\n"
    with pytest.raises(ConfigError, match="output holds no floating tensor; return a loss as third item"):
        measure_own(module("return Whole(), x", head=head), 0.5, 1)


def test_what_cannot_be_imported_is_said(module):
    path = module("return Pair(), x")
    with pytest.raises(ConfigError, match="has no function 'exampel'; did you mean 'example'?"):
        measure_own(path.replace("example", "exampel"), 0.5, 1)
    with pytest.raises(ConfigError, match="nowhere.at_all cannot be imported from here .ModuleNotFoundError"):
        measure_own("nowhere.at_all:example", 0.5, 1)

"""Arithmetic of each parameter tensor, against counts by hand; published ones are in tests/models."""

import torch
from torch import nn

from suite.config.experiment import LSTMConfig
from suite.measure.work import multiply_accumulates
from suite.models import LSTMLanguageModel


def test_counts_by_hand():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(100, 7)).eval()
    assert multiply_accumulates(model, torch.zeros(1, 3, 5, 5)) == {
        "0.weight": 25 * 4 * 27, "0.bias": 25 * 4, "1.weight": 100, "1.bias": 100, "3.weight": 700, "3.bias": 7,
    }  # fmt: skip


def test_language_model_by_hand():
    model = LSTMLanguageModel(11, LSTMConfig(embedding=3, hidden=5, layers=1)).to("meta")
    work = multiply_accumulates(model, torch.zeros(2, 4, dtype=torch.long, device="meta"), None)
    assert work["embedding.weight"] == 8 * 3 and work["decoder.weight"] == 8 * 55
    assert work["lstm.weight_ih_l0"] == 8 * 60 and list(work) == [name for name, _ in model.named_parameters()]

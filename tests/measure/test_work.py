"""Arithmetic of each parameter tensor, against counts by hand and the published count of ResNet-50."""

import pytest
import torch
from torch import nn

from suite.config.experiment import LSTMConfig
from suite.measure.work import multiply_accumulates
from suite.models import LSTMLanguageModel, resnet50


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


def test_resnet50_has_its_published_four_billion():
    """He et al. 2016, table 1: 3.8e9 multiply-adds; with the stride in the 3 x 3 convolution, as torchvision, 4.1e9."""
    with torch.device("meta"):
        work = multiply_accumulates(resnet50(3, 1000).eval(), torch.empty(1, 3, 224, 224))
    assert len(work) == 161 and sum(work.values()) == pytest.approx(4.1e9, rel=0.01)

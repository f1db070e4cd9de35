"""Arithmetic of each parameter tensor, against counts by hand and the published count of ResNet-50."""

import pytest
import torch
from torch import nn

from suite.config.experiment import InceptionV4Config, LSTMConfig, ResNet50Config, VGG16Config
from suite.measure.work import multiply_accumulates
from suite.models import LSTMLanguageModel, describe_model


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


@pytest.mark.parametrize(
    "settings, side, classes, expected",
    [
        # He et al. 2016, table 1: 3.8e9 multiply-adds; with the stride in the 3 x 3 convolution, as torchvision, 4.1e9.
        (ResNet50Config(), 224, 1000, 4.1e9),
        # Thirteen 3 x 3 convolutions at 32, 16, 8, 4 and 2 pixels a side: 313.2e6, and little for biases and BatchNorm.
        (VGG16Config(), 32, 10, 313.2e6),
        # 12.3e9 is the number commonly given at 299 pixels; the paper itself gives none.
        (InceptionV4Config(), 299, 1000, 12.3e9),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_image_networks_have_their_known_arithmetic(settings, side: int, classes: int, expected: float):
    model = describe_model(settings, 3, classes).eval()
    work = multiply_accumulates(model, torch.empty(1, 3, side, side, device="meta"))
    assert list(work) == [name for name, _ in model.named_parameters()] and min(work.values()) > 0
    assert sum(work.values()) == pytest.approx(expected, rel=0.01)


def test_lstm_ptb_multiplies_each_weight_once_a_token():
    model = describe_model(LSTMConfig(embedding=1500, hidden=1500, layers=2), 0, 10_000).eval()
    work = multiply_accumulates(model, torch.zeros(1, 35, dtype=torch.long, device="meta"), None)
    assert work["lstm.weight_hh_l1"] == 35 * 9_000_000 and work["decoder.weight"] == 35 * 15_000_000

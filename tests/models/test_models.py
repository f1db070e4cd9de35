"""Sizes of the networks against published numbers, and their shapes."""

import torch

from suite.config.experiment import LSTMConfig
from suite.models import LSTMLanguageModel, ResNet20
from suite.world.worker import FlatParameters


def count(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_resnet20_has_0_27_million_parameters():
    """He et al. 2016, table 6: 0.27 M for 20 layers on CIFAR-10."""
    model = ResNet20(channels=3, classes=10)
    assert count(model) == 269_722
    convolutions = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len(convolutions) + 1 == 20
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_lstm_ptb_has_66_million_parameters():
    """Zaremba et al. 2014, section 4.1: 1500 units, 10,000 words, 66 M parameters."""
    model = LSTMLanguageModel(10_000, LSTMConfig(embedding=1500, hidden=1500, layers=2, dropout=0.65))
    assert round(count(model) / 1e6) == 66


def test_lstm_carries_its_hidden_state():
    model = LSTMLanguageModel(20, LSTMConfig(embedding=4, hidden=6)).eval()
    text = torch.randint(0, 20, (3, 10))
    whole, _ = model(text, None)
    first, hidden = model(text[:, :4], None)
    second, _ = model(text[:, 4:], hidden)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)


def test_flat_parameters_share_memory():
    model = ResNet20(channels=1, classes=10)
    flat = FlatParameters(model)
    flat.vector.zero_()
    assert all(not p.any() for p in model.parameters()) and flat.vector.numel() == count(model)

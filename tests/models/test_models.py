"""Sizes of the networks against published numbers, and their shapes."""

from itertools import pairwise

import pytest
import torch

from suite.config.experiment import LSTMConfig
from suite.data import load_dataset
from suite.models import VGG16, LSTMLanguageModel, ResNet20, build_model, resnet50
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


def test_vgg16_has_the_parameters_of_its_table():
    """Simonyan & Zisserman 2015, table 1, D: thirteen 3 x 3 convolutions with bias; a BatchNorm each; 512 features."""
    widths = [3, 64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512]
    convolutions = sum((9 * before + 1) * after for before, after in pairwise(widths))
    expected = convolutions + 2 * sum(widths[1:]) + (512 + 1) * 10
    assert count(VGG16(channels=3, classes=10)) == expected == 14_728_266


def test_resnet50_has_the_published_size():
    """torchvision's documentation of ResNet50_Weights: 25,557,032 parameters."""
    with torch.device("meta"):
        model = resnet50(channels=3, classes=1000)
    assert count(model) == 25_557_032 and len(list(model.parameters())) == 161


@pytest.mark.parametrize("name", ["vgg16", "resnet50"])
@pytest.mark.parametrize("channels", [1, 3])
def test_large_networks_learn_from_a_batch(tiny, name: str, channels: int):
    """Every parameter gets a gradient, and the seed fixes the initial weights."""
    data = {"name": "synthetic", "channels": channels, "samples": 32}
    config = tiny(model={"name": name}, data=data, world={"workers": 1}, train={"batch_size": 2})
    dataset = load_dataset(config)
    model = build_model(config, dataset)
    images, labels = (part[:2] for part in dataset.train)
    logits = model(images)
    assert logits.shape == (2, 10)
    torch.nn.functional.cross_entropy(logits, labels).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    again = build_model(config, dataset)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


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

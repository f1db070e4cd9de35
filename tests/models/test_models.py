"""Sizes of the networks against published numbers, and their shapes."""

from itertools import pairwise

import pytest
import torch

from suite.config.experiment import InceptionV4Config, LSTMConfig, ResNet50Config
from suite.data import load_dataset
from suite.models import VGG16, InceptionV4, LSTMLanguageModel, ResNet20, build_model, describe_model
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
    model = describe_model(ResNet50Config(), channels=3, classes=1000)
    assert count(model) == 25_557_032 and len(list(model.parameters())) == 161


# Szegedy et al. 2016, figures 3 to 8: channels in, channels out and kernel entries of every convolution, and how many
# blocks of the kind there are.
INCEPTION_V4 = {
    "stem": (1, [(3, 32, 9), (32, 32, 9), (32, 64, 9), (64, 96, 9), (160, 64, 1), (64, 96, 9), (160, 64, 1),
                 (64, 64, 7), (64, 64, 7), (64, 96, 9), (192, 192, 9)]),
    "A": (4, [(384, 96, 1), (384, 96, 1), (384, 64, 1), (64, 96, 9), (384, 64, 1), (64, 96, 9), (96, 96, 9)]),
    "reduction A": (1, [(384, 384, 9), (384, 192, 1), (192, 224, 9), (224, 256, 9)]),
    "B": (7, [(1024, 128, 1), (1024, 384, 1), (1024, 192, 1), (192, 224, 7), (224, 256, 7), (1024, 192, 1),
              (192, 192, 7), (192, 224, 7), (224, 224, 7), (224, 256, 7)]),
    "reduction B": (1, [(1024, 192, 1), (192, 192, 9), (1024, 256, 1), (256, 256, 7), (256, 320, 7), (320, 320, 9)]),
    "C": (3, [(1536, 256, 1), (1536, 256, 1), (1536, 384, 1), (384, 256, 3), (384, 256, 3), (1536, 384, 1),
              (384, 448, 3), (448, 512, 3), (512, 256, 3), (512, 256, 3)]),
}  # fmt: skip


def test_inception_v4_is_that_of_its_figures():
    blocks = [convolution for times, block in INCEPTION_V4.values() for convolution in times * block]
    model = describe_model(InceptionV4Config(), channels=3, classes=1000)
    shapes = [m.weight.shape for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert sorted((s[1], s[0], s[2] * s[3]) for s in shapes) == sorted(blocks)
    with_norm = sum(before * after * kernel + 2 * after for before, after, kernel in blocks)
    assert count(model) == with_norm + (1536 + 1) * 1000 == 42_679_816


def test_inception_v4_reads_images_from_its_smallest_on():
    """75 pixels a side leave one at the end, 299 leave eight (figure 9)."""
    model = InceptionV4(channels=1, classes=3).eval()
    assert model(torch.zeros(1, 1, 75, 75)).shape == (1, 3)
    with torch.device("meta"):
        assert InceptionV4(3, 3).features(torch.zeros(1, 3, 299, 299)).shape == (1, 1536, 8, 8)
    with pytest.raises(RuntimeError):
        model(torch.zeros(1, 1, 74, 74))


@pytest.mark.parametrize("name, side", [("vgg16", 32), ("resnet50", 32), ("inception_v4", 80)])
@pytest.mark.parametrize("channels", [1, 3])
def test_large_networks_learn_from_a_batch(tiny, name: str, side: int, channels: int):
    """Every parameter gets a gradient, and the seed fixes the initial weights."""
    data = {"name": "synthetic", "image_size": side, "channels": channels, "samples": 32}
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


@pytest.mark.parametrize("width, expected", [(1500, 66_034_000), (200, 4_653_200)])
def test_lstm_ptb_has_its_published_size(width: int, expected: int):
    """Zaremba et al. 2014, section 4.1: 66 M parameters with 1500 units and 10,000 words; 200 by the same count."""
    model = describe_model(LSTMConfig(embedding=width, hidden=width, layers=2, dropout=0.65), 0, 10_000)
    a_layer = 2 * (4 * width * width + 4 * width)
    assert count(model) == 2 * 10_000 * width + 10_000 + 2 * a_layer == expected
    assert {name: tuple(p.shape) for name, p in model.named_parameters() if p.dim() > 1} == {
        "embedding.weight": (10_000, width), "decoder.weight": (10_000, width),
        "lstm.weight_ih_l0": (4 * width, width), "lstm.weight_hh_l0": (4 * width, width),
        "lstm.weight_ih_l1": (4 * width, width), "lstm.weight_hh_l1": (4 * width, width),
    }  # fmt: skip


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


def test_lstm_in_bfloat16_stays_near_float32():
    """Where the processor has no recurrent layers of that type, these stay in float32; the decoder does not."""
    torch.manual_seed(0)
    model = LSTMLanguageModel(20, LSTMConfig(embedding=8, hidden=12)).eval()
    text = torch.randint(0, 20, (3, 10))
    exact, hidden = model(text, None)
    with torch.autocast("cpu", torch.bfloat16):
        found, found_hidden = model(text, None)
        found.float().sum().backward()
    assert found.dtype == torch.bfloat16 and all(p.grad is not None for p in model.parameters())
    torch.testing.assert_close(found.float(), exact, atol=0.02, rtol=0.02)
    for ours, reference in zip(found_hidden, hidden, strict=True):
        torch.testing.assert_close(ours.float(), reference, atol=0.02, rtol=0.02)

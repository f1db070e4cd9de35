"""Forward multiply-adds and layer shapes of the networks against published numbers."""

import pytest
import torch
from torch import nn

from suite.config.experiment import InceptionV4Config, LSTMConfig, ResNet20Config, ResNet50Config, VGG16Config
from suite.measure.work import multiply_accumulates
from suite.models import describe_model


def multiply_adds(settings, *batch: torch.Tensor | None, channels: int = 3, classes: int) -> int:
    """Of convolutions and matrix products alone, as published counts have them: no biases, no BatchNorm."""
    model = describe_model(settings, channels, classes).eval()
    work = multiply_accumulates(model, *batch)
    matrices = {name for name, parameter in model.named_parameters() if parameter.dim() > 1}
    return int(sum(count for name, count in work.items() if name in matrices and "embedding" not in name))


def image(side: int, channels: int = 3) -> torch.Tensor:
    return torch.empty(1, channels, side, side, device="meta")


def shapes(settings, modules: list[str], side: int, classes: int) -> list[tuple[int, ...]]:
    """What these modules give for one image: channels, height, width."""
    model = describe_model(settings, 3, classes).eval()
    found: dict[str, tuple[int, ...]] = {}
    for name in modules:
        model.get_submodule(name).register_forward_hook(
            lambda module, given, output, name=name: found.update({name: tuple(output.shape[1:])})
        )
    model(image(side))
    return [found[name] for name in modules]


def test_resnet20():
    """He et al. 2016, section 4.2: 1 + 6 + 6 + 6 convolutions at 32, 16 and 8 pixels a side, 16, 32 and 64 channels."""
    layers = [(3, 16, 32, 1), (16, 16, 32, 6), (16, 32, 16, 1), (32, 32, 16, 5), (32, 64, 8, 1), (64, 64, 8, 5)]
    expected = sum(9 * before * after * side**2 * times for before, after, side, times in layers) + 64 * 10
    assert multiply_adds(ResNet20Config(), image(32), classes=10) == expected == 40_551_040
    groups = shapes(ResNet20Config(), ["group1", "group2", "group3"], 32, 10)
    assert groups == [(16, 32, 32), (32, 16, 16), (64, 8, 8)]


def test_vgg16():
    """Li et al. 2017 (arXiv 1608.08710, table 1): 3.13e8 for VGG-16 on CIFAR-10."""
    count = multiply_adds(VGG16Config(), image(32), classes=10)
    assert count == 313_201_664 and count == pytest.approx(3.13e8, rel=0.002)
    pools = [f"features.{i}" for i, module in enumerate(vgg_modules()) if isinstance(module, nn.MaxPool2d)]
    assert shapes(VGG16Config(), pools, 32, 10) == [
        (64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2), (512, 1, 1),
    ]  # fmt: skip


def vgg_modules() -> nn.Sequential:
    return describe_model(VGG16Config(), 3, 10).features


def test_vgg16_of_another_width():
    """A quarter of the channels is a sixteenth of the arithmetic, but for the first layer, which reads three."""
    whole, quarter = (multiply_adds(VGG16Config(width=width), image(32), classes=10) for width in (64, 16))
    first = 9 * 3 * 64 * 32**2
    assert quarter == (whole - first - 5120) / 16 + (first + 5120) / 4
    size = sum(p.numel() for p in describe_model(VGG16Config(width=16), 3, 10).parameters())
    weights = [p for p in describe_model(VGG16Config(width=16), 3, 10).parameters() if p.dim() == 4]
    assert [len(w) for w in weights] == [16, 16, 32, 32, 64, 64, 64, 128, 128, 128, 128, 128, 128]
    assert size == sum(w.numel() + 3 * len(w) for w in weights) + 129 * 10


def test_resnet50():
    """torchvision's own table of its models: operations and parameters; He et al. 2016, table 1: sizes of stages."""
    from torchvision.models import ResNet50_Weights

    published = ResNet50_Weights.IMAGENET1K_V1.meta
    count = multiply_adds(ResNet50Config(), image(224), classes=1000)
    assert count == pytest.approx(1e9 * published["_ops"], rel=2e-4)
    assert sum(p.numel() for p in describe_model(ResNet50Config(), 3, 1000).parameters()) == published["num_params"]
    stages = shapes(ResNet50Config(), ["maxpool", "layer1", "layer2", "layer3", "layer4"], 224, 1000)
    assert stages == [(64, 56, 56), (256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)]


def test_inception_v4():
    """Model card of timm/inception_v4.tf_in1k: 12.3 G multiply-adds and 42.7 M parameters at 299 pixels a side."""
    assert round(multiply_adds(InceptionV4Config(), image(299), classes=1000) / 1e9, 1) == 12.3
    ends = [3, 4, 5, 9, 10, 17, 18, 21]  # of the stem's three branchings, then of each kind of block
    assert shapes(InceptionV4Config(), [f"features.{i}" for i in ends], 299, 1000) == [
        (160, 73, 73), (192, 71, 71), (384, 35, 35), (384, 35, 35), (1024, 17, 17), (1024, 17, 17), (1536, 8, 8),
        (1536, 8, 8),
    ]  # fmt: skip


@pytest.mark.parametrize("width", [200, 1500])
def test_lstm_multiplies_each_weight_once_a_token(width: int):
    """Zaremba et al. 2014, section 4.1: two layers of 200 or 1500 units, 10,000 words; a gate has two matrices."""
    settings = LSTMConfig(embedding=width, hidden=width, layers=2)
    tokens = torch.zeros(1, 35, dtype=torch.long, device="meta")
    a_token = 2 * 4 * 2 * width**2 + width * 10_000
    assert multiply_adds(settings, tokens, None, channels=0, classes=10_000) == 35 * a_token

"""Layers are told by the names and sizes of their tensors."""

from collections import Counter

import pytest

from suite.config.experiment import InceptionV4Config, LSTMConfig, ResNet20Config, ResNet50Config, VGG16Config
from suite.models import describe_model
from suite.record.kinds import KINDS, layer_kinds


def kinds(segments: dict[str, int]) -> dict[str, str]:
    return dict(zip(segments, layer_kinds(segments, segments.values()), strict=True))


@pytest.mark.parametrize(
    "settings, expected",
    [(ResNet20Config(), {"convolution": 19, "normalisation": 38, "linear": 1, "bias": 1}),
     (VGG16Config(), {"convolution": 13, "normalisation": 26, "linear": 1, "bias": 14}),
     (ResNet50Config(), {"convolution": 53, "normalisation": 106, "linear": 1, "bias": 1}),
     (InceptionV4Config(), {"convolution": 149, "normalisation": 298, "linear": 1, "bias": 1}),
     (LSTMConfig(), {"embedding": 1, "recurrent": 4, "linear": 1, "bias": 5})],
    ids=lambda value: getattr(value, "name", ""),
)  # fmt: skip
def test_every_tensor_of_the_models(settings, expected: dict[str, int]):
    """Counted by the modules that own the tensors."""
    model = describe_model(settings, 3, 10)
    found = kinds({name: parameter.numel() for name, parameter in model.named_parameters()})
    assert dict(Counter(found.values())) == expected
    for name, kind in found.items():
        owner = type(model.get_submodule(name.rpartition(".")[0])).__name__
        of = {"Conv2d": "convolution", "BatchNorm2d": "normalisation", "Linear": "linear", "LSTM": "recurrent",
              "Embedding": "embedding"}[owner]  # fmt: skip
        assert kind == of or (kind == "bias" and "bias" in name), name


def test_the_whole_gradient_is_its_own_kind():
    assert kinds({"gradient": 270_000}) == {"gradient": "whole gradient"}


def test_silent_names_are_told_by_size_or_not_at_all():
    sizes = {"0.weight": 1728, "0.bias": 64, "1.weight": 64, "1.bias": 64}
    assert list(kinds(sizes).values()) == ["other", "bias", "normalisation", "normalisation"]
    assert set(kinds(sizes).values()) <= set(KINDS)

"""Layers files of published models are what their totals and shapes give."""

import pytest
import yaml
from typer.testing import CliRunner

from helpers import ROOT
from suite.cli.app import app
from suite.config.costs import LayerCosts
from suite.errors import ConfigError
from suite.plan import Layout
from suite.speed.layers import spread_over_layers
from suite.speed.published import published_model, read_published

PUBLISHED = read_published(ROOT / "replications" / "lags2019" / "published.yaml")
MODELS = PUBLISHED.iteration_times.models
# Tensors and parameters; see tests/models.
SHAPES = {
    "VGG-16": (54, 14_728_266), "ResNet-50": (161, 25_557_032), "Inception-v4": (449, 42_679_816),
    "LSTM-PTB": (11, 66_034_000),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_the_file_is_what_the_command_writes(name: str):
    times = MODELS[name]
    kept = LayerCosts.model_validate(yaml.safe_load((ROOT / "replications" / "lags2019" / times.layers).read_text()))
    made = spread_over_layers(name, times)
    assert (kept.source, kept.forward, kept.select_whole) == (made.source, made.forward, made.select_whole)
    for ours, theirs in zip(kept.layers, made.layers, strict=True):
        assert (ours.name, ours.size) == (theirs.name, theirs.size)
        assert (ours.backward, ours.select) == pytest.approx((theirs.backward, theirs.select))


@pytest.mark.parametrize("name", MODELS)
def test_totals_and_sizes_are_those_published(name: str):
    times = MODELS[name]
    costs = LayerCosts.model_validate(yaml.safe_load((ROOT / "replications" / "lags2019" / times.layers).read_text()))
    assert (len(costs.layers), sum(layer.size for layer in costs.layers)) == SHAPES[name]
    assert costs.forward == times.forward and costs.select_whole == times.slgs.selection
    assert (costs.backward, costs.select) == pytest.approx((times.backward, times.lags.selection), rel=1e-5)
    assert Layout(tuple(layer.name for layer in costs.layers), tuple(layer.size for layer in costs.layers)).size
    assert times.density == (0.004 if name == "LSTM-PTB" else 0.001)


def test_the_command(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["measure", "published", "lstm-ptb", "--out", str(tmp_path / "layers.yaml")])
    assert result.exit_code == 0 and "66,034,000 parameters" in result.stdout
    assert (tmp_path / "layers.yaml").read_text() == (ROOT / "replications/lags2019/layers/lstm-ptb.yaml").read_text()


def test_an_unknown_model_is_refused_with_the_nearest(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match="nobody published times of 'ResNet50'; did you mean 'ResNet-50'?"):
        published_model("ResNet50")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="run from the root of the suite's checkout"):
        published_model("ResNet-50")


def test_the_device_has_the_bandwidth_of_its_memory():
    """320 bit at 11 Gb/s."""
    assert PUBLISHED.iteration_times.device.memory_bandwidth == 320 / 8 * 11e9

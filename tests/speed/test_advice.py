"""Advice: the fastest method is named, the answer changes where it says, and dense is best where it is."""

import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from costs import case
from helpers import ROOT
from suite.cli.app import app
from suite.config.costs import LinearCost, LinkCosts, NetworkCosts
from suite.errors import ConfigError
from suite.methods import settings_from
from suite.speed.advice import MARGIN, advise
from suite.speed.draw import draw_advice
from suite.speed.networks import link_at
from suite.speed.subject import Subject, read_subject


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def suite(*arguments) -> str:
    """Standard output of `suite advise`; raises what it raises."""
    result = CliRunner().invoke(app, ["advise", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.stdout


def subject_of(layers, density: float = 0.01) -> Subject:
    layout, costs, _ = case(layers, 0, 0)
    return Subject("made up", layout, costs.layers, settings_from({"name": "lags", "density": density}))


def test_sparsification_pays_on_a_slow_network_and_not_on_a_fast_one():
    subject = read_subject("ResNet-50")
    slow, fast = advise(subject, link_at(1, 16)), advise(subject, link_at(10, 16))
    assert slow.best == "lags" and slow.ranked[0].title == "LAGS, merged"
    assert re.fullmatch(
        r"LAGS is 4.\d+ times as fast as dense here; dense is as fast or faster above 6.\d+ Gb/s", slow.sentence
    )
    assert fast.best == "dense" and fast.ranked[0].title == "dense, merged"
    assert (
        fast.sentence.startswith("dense is best here: LAGS would take 1.")
        and "LAGS is faster below 6." in fast.sentence
    )
    (change,) = slow.changes
    assert change.bandwidth == pytest.approx(fast.changes[0].bandwidth, rel=1e-3)
    for bandwidth, best in ((change.bandwidth * 0.99, "lags"), (change.bandwidth * 1.01, "dense")):
        assert advise(subject, link_at(bandwidth, 16)).best == best


def test_selection_that_takes_nothing_pays_until_the_exchange_hides():
    """Exchange of nothing but bytes: dense is as fast as soon as 8 MB a worker take less than back-propagation."""
    subject = subject_of([(0, 0, 10), (100, 0, 1_000_000)])
    network = LinkCosts(workers=16, alpha=0, bandwidth=1e9).network()
    advice = advise(subject, network)
    assert advice.best in ("slgs", "lags") and advice.changes[-1].above == "dense"
    fastest = min(one.timeline.iteration for one in advice.ranked)
    assert advice.ranked[0].timeline.iteration == fastest


@settings(max_examples=10)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 10), st.integers(1, 10**6)), min_size=1, max_size=5),
    st.floats(0.2, 300),
)
def test_nothing_ranked_is_faster_than_the_advice(layers, gigabits):
    advice = advise(subject_of(layers), LinkCosts(workers=8, alpha=1e-5, bandwidth=gigabits * 1e9).network())
    seconds = [one.timeline.iteration for one in advice.ranked]
    assert seconds == sorted(seconds)
    best = min(one.timeline.iteration for one in advice.ranked if one.method == advice.best)
    assert best <= seconds[0] * (1 + MARGIN) * (1 + 1e-8)
    assert all(change.below != change.above for change in advice.changes)
    for before, after in zip(advice.changes, advice.changes[1:], strict=False):
        assert before.above == after.below and before.bandwidth < after.bandwidth


def test_a_measured_network_keeps_its_start_ups():
    """Its lines are scaled by bandwidth; at its own they are themselves."""
    lines = NetworkCosts(
        workers=4, all_gather=LinearCost(start=0.05, per_byte=1e-9), all_reduce=LinearCost(start=0.06, per_byte=1.5e-8)
    )
    advice = advise(subject_of([(10, 1, 10_000), (10, 1, 1_000_000)]), lines)
    assert advice.gigabits == pytest.approx(8 / (1.5e-8 * 4 / 6) / 1e9)
    own = advise(advice.subject, lines.at_bandwidth(lines.bandwidth))
    assert [one.timeline.iteration for one in own.ranked] == pytest.approx(
        [one.timeline.iteration for one in advice.ranked]
    )


def test_where_bytes_cost_nothing_there_is_nothing_to_say_about_bandwidth(tmp_path):
    free = LinearCost(start=0.001, per_byte=0)
    advice = advise(subject_of([(10, 1, 10_000)]), NetworkCosts(workers=4, all_gather=free, all_reduce=free))
    assert advice.changes is None and "bytes cost nothing on this network" in advice.sentence
    assert json.dumps(advice.to_dict(), allow_nan=False) and advice.to_dict()["bandwidth"] is None
    with pytest.raises(ConfigError, match="no bandwidth to draw over"):
        draw_advice(tmp_path / "advice.png", advice)


def test_the_command(tmp_path):
    said = suite("ResNet-50", "--network", "10gbe", "--figure", tmp_path / "advice.png")
    assert "Dense is best here" in said and said.rstrip().endswith("advice.png") and "…" not in said
    image = Image.open(tmp_path / "advice.png")
    assert len(image.convert("RGB").getcolors(image.width * image.height)) > 20
    found = json.loads(suite("LSTM-PTB", "--network", "1gbe", "--json"))
    assert found["best"] == "lags" and found["workers"] == 16 and found["bandwidth"] == pytest.approx(1)
    by_plan = {row["plan"]: row for row in found["methods"]}
    assert by_plan["dense, merged"]["speed_up"] == 1
    assert by_plan["SLGS"]["sent_bytes"] == 15 * 8 * (66_034_000 * 4 // 1000)
    assert by_plan["dense, merged"]["sent_bytes"] == 30 / 16 * 4 * 66_034_000


def test_a_model_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_training.py").write_text(
        "import torch\nfrom torch import nn\n\ndef example():\n"
        "    return nn.Sequential(nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 10)), torch.randn(16, 64)\n"
    )
    link = ("--bandwidth", 0.5, "--alpha", 1e-5, "--workers", 8, "--batches", 2)
    kept = tmp_path / "layers.yaml"
    found = json.loads(suite("my_training:example", *link, "--out", kept, "--json", "--set", "method.density=0.02"))
    assert found["workers"] == 8 and "Sequential of my_training:example" in found["layers"]
    assert {row["density"] for row in found["methods"] if row["plan"] == "SLGS"} == {0.02}
    times = yaml.safe_load(kept.read_text())
    assert [layer["size"] for layer in times["layers"]] == [12_800, 200, 2000, 10]
    again = json.loads(suite(kept, *link, "--json", "--set", "method.density=0.02"))
    assert again["methods"] == found["methods"]


def test_a_configuration_without_costs_is_measured(config_file):
    found = json.loads(suite(config_file(), "--network", "10gbe", "--batches", 1, "--json"))
    assert found["workers"] == 4 and "lstm on pydoc" in found["layers"]
    assert {row["density"] for row in found["methods"] if row["plan"] == "SLGS"} == {0.05}


@pytest.mark.slow
@pytest.mark.horovod
def test_a_network_measured_here():
    found = json.loads(suite("VGG-16", "--measure-network", "--workers", 2, "--json"))
    assert found["workers"] == 2 and found["network"]["source"].startswith("suite measure network: horovod, 2 workers")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["ResNet-51", "--network", "1gbe"], "did you mean 'ResNet-50'"),
        (["ResNet-50"], "say on which network: --network 10gbe, --bandwidth 10"),
        (["ResNet-50", "--network", "1gbe", "--bandwidth", "1"], "give one of --network, --bandwidth"),
        (["ResNet-50", "--network", "1gbe", "--workers", "1"], "needs at least 2 workers, not 1"),
        (["ResNet-50", "--measure-network"], "say how many with --workers"),
        (["ResNet-50", "--network", "1gbe", "--out", "x.yaml"], "--out keeps times that are measured here"),
        (["ResNet-50", "--network", "1gbe", "--alpha", "1e-5"], "--alpha belongs to a link of --bandwidth"),
        (["not_there:example", "--network", "1gbe"], "not_there cannot be imported from here"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ConfigError, match=message) as refused:
        suite(*arguments)
    assert "\n" not in str(refused.value)

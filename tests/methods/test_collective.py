"""A method says what its messages cost: another system's collective is predicted, merged and adapted to."""

import math
from typing import Literal

import pytest

from costs import case
from suite.config.costs import Costs, LinearCost, LinkCosts
from suite.errors import ConfigError
from suite.methods import METHODS, build_method, settings_from
from suite.methods.lags import LAGS, LAGSSettings
from suite.plan import Layout
from suite.speed.predictions import prediction

WORKERS, ALPHA, BANDWIDTH = 16, 1e-4, 1e9
LAYOUT, COSTS, _ = case([(4, 1, 200_000), (6, 1, 50_000), (2, 1, 400_000)], 0, 0)
COSTS = Costs(layers=COSTS.layers, network=LinkCosts(workers=WORKERS, alpha=ALPHA, bandwidth=BANDWIDTH).network())


class TreeSettings(LAGSSettings):
    """Of a method that is not registered."""

    name: Literal["tree"] = "tree"


class Tree(LAGS):
    """gTop-k's way of a payload: up a binary tree and down again, log2 P messages each (arXiv 1901.04359, its code)."""

    Settings = TreeSettings
    label = "tree"

    def collective(self, network, sparse):
        link, steps = network.link, 2 * math.ceil(math.log2(network.workers))
        return LinearCost(start=steps * link.start, per_byte=steps * link.per_byte)


def tree(**settings) -> Tree:
    return Tree(TreeSettings(density=0.01, **settings), COSTS)


def test_its_exchange_is_2_log2_p_alpha_and_2_log2_p_n_beta():
    found = prediction("tree", tree(messages="one"), LAYOUT, COSTS)
    entries = sum(LAYOUT.sizes) // 100
    assert found.plan.entries == entries
    expected = 2 * 4 * ALPHA + 2 * 4 * (8 * entries) * 8 / BANDWIDTH
    assert found.timeline.exchange_total == pytest.approx(expected)
    usual = prediction("usual", LAGS(LAGSSettings(density=0.01, messages="one"), COSTS), LAYOUT, COSTS)
    assert usual.timeline.exchange_total == pytest.approx(4 * ALPHA + 15 * (8 * entries) * 8 / BANDWIDTH)


def test_its_messages_are_merged_and_its_ratios_adapted_by_it():
    """It starts twice as slowly and sends nearly twice as fast as an all-gather among 16."""
    layer = prediction("layer", tree(messages="layer"), LAYOUT, COSTS).timeline.iteration
    merged = prediction("merged", tree(messages="merged"), LAYOUT, COSTS).timeline.iteration
    assert merged <= layer * (1 + 2e-9)
    adaptive = {"adaptive": {"c_u": 100}, "messages": "layer"}
    ours = tree(**adaptive).plan(LAYOUT, 0)
    usual = LAGS(LAGSSettings(density=0.01, **adaptive), COSTS).plan(LAYOUT, 0)
    assert ours.entries > usual.entries
    assert "tree" not in METHODS


def exchange_ms(settings: dict, layout: Layout, workers: int, alpha: float, bandwidth: float) -> float:
    costs = {
        "layers": {"forward": 0.0, "layers": [{"name": n, "backward": 0.0, "select": 0.0} for n in layout.names]},
        "network": {"workers": workers, "alpha": alpha, "bandwidth": bandwidth},
    }
    costs = Costs.model_validate(costs)
    found = prediction("", build_method(settings_from(settings), costs), layout, costs)
    return 1e3 * found.timeline.exchange_total


def test_gtopk_overtakes_top_k_at_eight_workers():
    """By the constants of its authors' scripts: 0.436 ms a message, 3.6e-5 ms an element of four bytes; 25 Mi entries,
    density 0.001; their formulas give 6.5, 14.5, 30.1 and 60.7 ms against 9.3, 13.9, 18.6 and 23.2."""
    layout, network = Layout(("gradient",), (25 * 2**20,)), {"alpha": 0.436e-3, "bandwidth": 32 / 3.6e-8}
    topk, gtopk = (
        [exchange_ms({"name": name, "density": 0.001}, layout, p, **network) for p in (4, 8, 16, 32)]
        for name in ("topk", "gtopk")
    )
    assert topk == pytest.approx([6.5, 14.5, 30.1, 60.7], rel=0.01)
    assert gtopk == pytest.approx([9.3, 13.9, 18.6, 23.2], rel=0.01)


def test_low_rank_exchanges_by_their_formulas():
    """Power-SGD starts two all-reduces for r (n + m) + d1 numbers, ACP-SGD one for half of the first on average."""
    layout, rank = Layout.of([("weight", (300, 200)), ("bias", (300,))]), 4
    link = {"workers": 16, "alpha": 1e-4, "bandwidth": 1e8}
    ring, byte = 2 * 15 * 1e-4, 2 * 15 / 16 * 8 / 1e8

    def of(name: str) -> float:
        return exchange_ms({"name": name, "rank": rank, "messages": "one"}, layout, **link) / 1e3

    assert of("power_sgd") == pytest.approx(2 * ring + 4 * (rank * 500 + 300) * byte)
    assert of("acp_sgd") == pytest.approx(ring + 4 * (rank * 500 / 2 + 300) * byte)
    assert exchange_ms({"name": "power_sgd"}, layout, **link) > 0


@pytest.mark.parametrize("name", ["power_sgd", "acp_sgd"])
def test_low_rank_is_not_predicted_from_sizes(name: str):
    with pytest.raises(ConfigError, match="layers hold their sizes only; give a configuration with a model"):
        prediction("", build_method(settings_from(name), COSTS), LAYOUT, COSTS)

"""A method says what its messages cost: another system's collective is predicted, merged and adapted to."""

import math
from typing import Literal

import pytest

from costs import case
from suite.config.costs import Costs, LinearCost, LinkCosts
from suite.methods import METHODS
from suite.methods.lags import LAGS, LAGSSettings
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

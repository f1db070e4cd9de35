"""Published totals over layers."""

import pytest

from suite.timeline.spread import spread


def test_totals_stay_and_shares_follow_work_and_n_log_n():
    costs = spread(1.0, 2.0, 0.5, work={"a": 3.0, "b": 1.0}, sizes={"a": 8, "b": 1}, source="a paper", select_whole=0.7)
    assert (costs.forward, costs.backward, costs.select) == pytest.approx((1.0, 2.0, 0.5))
    assert [layer.backward for layer in costs.layers] == pytest.approx([1.5, 0.5])
    assert [layer.select for layer in costs.layers] == pytest.approx([0.5, 0.0])
    assert [(layer.name, layer.size) for layer in costs.layers] == [("a", 8), ("b", 1)]
    assert (costs.select_whole, costs.source) == (0.7, "a paper")

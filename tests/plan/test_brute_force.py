"""Predicted iterations against what they must be by definition, over all plans and random costs."""

from itertools import accumulate, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costs import case, layer, per_byte, start
from suite.config.costs import Costs, LinkCosts
from suite.methods import build_method, settings_from
from suite.plan import Message, Plan, layer_wise, merge, message_bytes, predict_plan
from suite.plan.predict import ready_times

layers = st.lists(layer, min_size=1, max_size=8)
methods = st.sampled_from(
    [{"name": "dense", "messages": messages} for messages in ("one", "layer", "merged")]
    + [{"name": "lags", "density": 0.01, "messages": messages} for messages in ("one", "layer", "merged")]
    + [{"name": "slgs", "density": 0.01}]
)


def groupings(plan: Plan):
    """All 2^(L-1) ways to put neighbours into common messages."""
    segments = plan.segments
    for count in range(len(segments)):
        for cuts in combinations(range(1, len(segments)), count):
            edges = [0, *cuts, len(segments)]
            yield Plan(tuple(Message(segments[a:b]) for a, b in zip(edges, edges[1:], strict=False)))


@given(layers, start, per_byte, st.booleans(), st.data())
def test_an_iteration_ends_with_the_longest_chain_of_messages(layers, start, per_byte, sparse, data):
    """max over i of: message i is ready, then it and all after it are exchanged without a pause."""
    layout, costs, plan = case(layers, start, per_byte)
    plan = plan if sparse else layer_wise(layout, lambda name: None)
    plan = data.draw(st.sampled_from(list(groupings(plan))))
    line = costs.network.all_gather if sparse else costs.network.all_reduce
    lasts = [count - 1 for count in accumulate(len(message.segments) for message in plan.messages)]
    ready = [ready_times(plan, layout, costs)[last] for last in lasts]
    exchange = [line.seconds(message_bytes(message)) for message in plan.messages]
    expected = max(at + sum(exchange[i:]) for i, at in enumerate(ready))
    assert predict_plan(plan, layout, costs).iteration == pytest.approx(expected)


@settings(max_examples=20)
@given(st.lists(layer, min_size=2, max_size=10), start, per_byte, st.booleans())
def test_merging_finds_the_shortest_of_all_groupings(layers, start, per_byte, sparse):
    layout, costs, plan = case(layers, start, per_byte)
    plan = plan if sparse else layer_wise(layout, lambda name: None)
    shortest = min(predict_plan(one, layout, costs).iteration for one in groupings(plan))
    merged = merge(plan, layout, costs)
    assert predict_plan(merged, layout, costs).iteration == pytest.approx(shortest, rel=2e-9)


@given(layers, methods, st.floats(0, 1e-3), st.lists(st.floats(1e6, 1e11), min_size=2, max_size=2))
def test_no_iteration_gets_longer_with_bandwidth(layers, settings, alpha, bandwidths):
    slower, faster = (seconds(layers, settings, 16, alpha, bandwidth) for bandwidth in sorted(bandwidths))
    assert faster <= slower * (1 + 2e-9)


@given(
    layers, methods, st.floats(0, 1e-3), st.floats(1e6, 1e11), st.lists(st.integers(1, 10_000), min_size=2, max_size=2)
)
def test_no_iteration_gets_shorter_with_workers(layers, settings, alpha, bandwidth, workers):
    few, many = (seconds(layers, settings, count, alpha, bandwidth) for count in sorted(workers))
    assert few <= many * (1 + 2e-9)


def seconds(layers, values, workers: int, alpha: float, bandwidth: float) -> float:
    """The predicted iteration of a method's own plan on a network of links."""
    layout, costs, _ = case(layers, 0, 0)
    network = LinkCosts(workers=workers, alpha=alpha, bandwidth=bandwidth).network()
    costs = Costs(layers=costs.layers, network=network)
    return predict_plan(build_method(settings_from(values), costs).plan(layout, 0), layout, costs).iteration

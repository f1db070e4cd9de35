"""The adaptive ratio: what hides is sent, within its bounds, and a faster network never sends less."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from costs import case, layer, per_byte, start
from suite.plan import Message, Plan, adapt, predict_plan

RULES = ("next", "later")


def entries(plan: Plan) -> list[int]:
    return [segment.k for segment in plan.segments]


@given(st.lists(layer, min_size=1, max_size=12), start, per_byte, st.sampled_from(RULES))
def test_ratios_lie_between_one_and_c_u(layers, start, per_byte, rule):
    layout, costs, least = case(layers, start, per_byte)
    adapted = adapt(least, layout, costs, rule).check(layout)
    assert all(low.k <= high.k <= high.size for low, high in zip(least.segments, adapted.segments, strict=True))
    assert adapted.segments[-1] == least.segments[-1], "the model's first layer has nothing left to hide behind"


@given(st.lists(layer, min_size=1, max_size=12), start, per_byte, st.floats(0, 1), st.sampled_from(RULES))
def test_a_faster_network_never_sends_less(layers, start, per_byte, faster, rule):
    layout, slow, least = case(layers, start, per_byte)
    _, fast, _ = case(layers, start, per_byte * faster)
    pairs = zip(entries(adapt(least, layout, slow, rule)), entries(adapt(least, layout, fast, rule)), strict=True)
    assert all(less <= more for less, more in pairs)


@given(st.lists(layer, min_size=1, max_size=12), start, per_byte)
def test_next_is_the_papers_formula(layers, start, per_byte):
    """By search over k from d down: the first that fits into the next layer's backward time, and else c_u's."""
    layers = [(b, s, d % 300 + 1) for b, s, d in layers]
    layout, costs, least = case(layers, start, per_byte, c_u=20)
    line, below = costs.network.all_gather, costs.layers.layers
    for i, segment in enumerate(reversed(adapt(least, layout, costs, "next").segments)):
        lowest = list(reversed(least.segments))[i].k
        room = below[i - 1].backward - below[i].select if i else -1
        fits = (k for k in range(segment.size, lowest, -1) if line.seconds(8 * k) <= room)
        assert abs(segment.k - next(fits, lowest)) <= 1  # one entry for rounding of times that fit exactly


@given(st.lists(layer, min_size=1, max_size=12), start, per_byte)
def test_later_is_as_short_as_sending_least_so_never_longer_than_next(layers, start, per_byte):
    layout, costs, least = case(layers, start, per_byte)
    shortest = predict_plan(least, layout, costs).iteration
    following, later = (predict_plan(adapt(least, layout, costs, rule), layout, costs).iteration for rule in RULES)
    assert later <= shortest * (1 + 1e-9) and later <= following * (1 + 1e-9)


@given(st.lists(layer, min_size=2, max_size=8), start, st.floats(1, 1000))
def test_later_leaves_no_time_unused(layers, start, per_byte):
    """Two entries more in the first message that was cut short are at least one too many: the iteration is longer."""
    layout, costs, least = case(layers, start, per_byte)
    adapted = adapt(least, layout, costs, "later")
    cut = next((i for i, segment in enumerate(adapted.segments[:-1]) if segment.size - segment.k >= 2), None)
    assume(cut is not None)
    more = list(adapted.messages)
    more[cut] = Message((replace(adapted.segments[cut], k=adapted.segments[cut].k + 2),))
    before, after = (predict_plan(plan, layout, costs).iteration for plan in (adapted, Plan(tuple(more))))
    assert after >= before + 0.9 * 8 * per_byte / 1e9


def test_by_hand():
    """Three layers of 100,000 entries, 1 ms of backward each: time for 12,500 entries of 80 ns."""
    layout, costs, least = case([(1, 0, 100_000)] * 3, start=0, per_byte=10)
    assert entries(adapt(least, layout, costs, "next")) == [12_500, 12_500, 100]
    # The last layer has 2 ms less what the middle one needs at c_u: 25,000 - 100 entries.
    assert entries(adapt(least, layout, costs, "later")) == [24_900, 100, 100]


def test_fast_networks_reach_ratio_one():
    layout, costs, least = case([(1, 0, 100_000)] * 3, start=0, per_byte=1)
    assert entries(adapt(least, layout, costs, "later")) == [100_000, 100_000, 100]


def test_selection_that_outlasts_the_next_layer_leaves_c_u():
    layout, costs, least = case([(1, 2, 100_000)] * 3, start=0, per_byte=1)
    assert entries(adapt(least, layout, costs, "next")) == [100, 100, 100]


def test_merged_messages_are_refused():
    layout, costs, least = case([(1, 0, 10)] * 3, start=0, per_byte=1)
    with pytest.raises(ValueError, match="merge the messages afterwards"):
        adapt(least.merged(), layout, costs, "later")

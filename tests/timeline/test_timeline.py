"""A predicted iteration obeys the recursion it is built from, and shares of a timeline are what they are called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.config.costs import LayerCost, LayerCosts
from suite.timeline import Event, Sending, Timeline, predict

seconds = st.floats(0, 1)
layer = st.tuples(seconds, seconds, seconds)  # backward, select, exchange


def costs_of(layers: list[tuple[float, float, float]], forward: float = 0.0) -> LayerCosts:
    """Costs whose layers, given last one first, are named by their place in the model."""
    rows = [LayerCost(name=f"l{i}", backward=b, select=s) for i, (b, s, _) in enumerate(reversed(layers))]
    return LayerCosts(forward=forward, layers=rows)


def layer_wise(layers: list[tuple[float, float, float]], selects: bool) -> list[Sending]:
    return [Sending(str(i), 1, exchange, selects) for i, (_, _, exchange) in enumerate(layers)]


@given(st.lists(layer, min_size=1, max_size=12), seconds, st.booleans())
def test_no_iteration_is_shorter_than_its_parts_or_longer_than_their_sum(layers, forward, selects):
    timeline = predict(costs_of(layers, forward), layer_wise(layers, selects))
    backward, select, exchange = (sum(column) for column in zip(*layers, strict=True))
    compute = forward + backward + (select if selects else 0)
    assert max(compute, forward + exchange) - 1e-9 <= timeline.iteration <= compute + exchange + 1e-9
    assert 0 <= timeline.hidden_share <= 1


@given(st.lists(layer, min_size=1, max_size=12), seconds)
def test_wait_free_back_propagation_is_its_published_recursion(layers, forward):
    tau_b, tau_c, before = forward, 0.0, (0.0, 0.0, 0.0)
    for number, (backward, _, exchange) in enumerate(layers):
        tau_b = tau_b + before[0]
        tau_c = max(tau_c + before[2], tau_b + backward) if number else tau_b + backward
        before = (backward, 0.0, exchange)
    expected = tau_c + layers[-1][2]
    assert predict(costs_of(layers, forward), layer_wise(layers, selects=False)).iteration == pytest.approx(expected)


@given(st.lists(layer, min_size=1, max_size=12), seconds)
def test_one_message_after_back_propagation_hides_nothing(layers, exchange):
    timeline = predict(costs_of(layers), [Sending("gradient", len(layers), exchange, True)])
    compute = sum(backward + select for backward, select, _ in layers)
    assert timeline.iteration == pytest.approx(compute + exchange)
    assert timeline.exposed == pytest.approx(exchange)


def test_events_by_hand():
    """Two layers: the last one's exchange of 4 s meets the first one's backward of 2 s."""
    timeline = predict(costs_of([(1, 0.5, 4), (2, 0.5, 1)], forward=1), layer_wise([(1, 0.5, 4), (2, 0.5, 1)], True))
    assert [(e.phase, e.label, e.start, e.end) for e in timeline.events] == [
        ("forward", "", 0, 1),
        ("backward", "l1", 1, 2), ("select", "0", 2, 2.5), ("exchange", "0", 2.5, 6.5),
        ("backward", "l0", 2.5, 4.5), ("select", "1", 4.5, 5), ("exchange", "1", 6.5, 7.5),
    ]  # fmt: skip
    assert (timeline.iteration, timeline.exchange_total, timeline.exposed) == (7.5, 5, 3)
    assert timeline.hidden_share == pytest.approx(0.4)


def test_intervals_that_overlap_count_once():
    """Two messages under way together, as traces have them, and back-propagation in two pieces over half of that."""
    events = (Event("exchange", "a", 0, 2), Event("exchange", "b", 1, 4))
    events += (Event("backward", "y", 1, 1.5), Event("backward", "x", 2, 3))
    timeline = Timeline(events)
    assert (timeline.exchange_total, timeline.exposed, timeline.hidden_share) == (4, 2, 0.5)


def test_messages_must_carry_every_layer():
    with pytest.raises(ValueError, match="carry 1 of 2 layers"):
        predict(costs_of([(1, 0, 0)] * 2), [Sending("a", 1, 1, False)])


def test_a_condensed_timeline_is_the_same_iteration():
    """Two layers' back-propagation in one piece, and one more after the selection in between."""
    layers = [(1, 0, 1), (2, 0, 1), (3, 0, 1)]
    sendings = [Sending("a", 2, 1, True, 0.5), Sending("b", 1, 1, False)]
    timeline = predict(costs_of(layers, forward=1), sendings)
    short = timeline.condensed()
    backward = [(e.label, e.start, e.end) for e in short.events if e.phase == "backward"]
    assert backward == [("l2 .. l1", 1, 4), ("l0", 4.5, 7.5)]
    assert (short.iteration, short.exposed) == (timeline.iteration, timeline.exposed)
    assert short.total("backward") == timeline.total("backward") and short.condensed() == short

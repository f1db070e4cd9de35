"""Plans cover the gradient once, in back-propagation order, with legal k."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import ConfigError
from suite.plan import Layout, Message, Plan, Segment, entries_kept, layer_wise, whole_gradient

LAYOUT = Layout(("first", "middle", "last"), (100, 3, 20))


def test_layer_wise_goes_backwards_and_covers_everything():
    plan = layer_wise(LAYOUT, lambda name: 0.1).check(LAYOUT)
    assert [message.name for message in plan.messages] == ["last", "middle", "first"]
    assert [segment.k for segment in plan.segments] == [2, 1, 10]


def test_merging_changes_messages_but_no_segment():
    plan = layer_wise(LAYOUT, lambda name: 0.1)
    merged = plan.merged().check(LAYOUT)
    assert len(merged.messages) == 1 and merged.segments == plan.segments
    assert (merged.messages[0].start, merged.messages[0].stop) == (0, LAYOUT.size)


def test_dense_and_slgs_are_one_segment():
    assert whole_gradient(LAYOUT, None).segments == (Segment("gradient", 0, 123, None),)
    assert whole_gradient(LAYOUT, 0.01).segments == (Segment("gradient", 0, 123, 1),)


@given(st.integers(1, 10**8), st.floats(1e-6, 1))
def test_k_is_between_one_and_d(size: int, density: float):
    assert 1 <= entries_kept(size, density) <= size


@pytest.mark.parametrize(
    "size, density, k", [(100, 0.07, 7), (1000, 0.001, 1), (16, 0.05, 1), (5, 1, 5), (2000, 0.0015, 3)]
)
def test_rounding(size: int, density: float, k: int):
    assert entries_kept(size, density) == k


@pytest.mark.parametrize(
    "segments, complaint",
    [
        ([Segment("a", 0, 100, 1), Segment("b", 101, 22, 1)], "starts at 101"),
        ([Segment("a", 0, 100, 1)], "covers 100 of 123"),
        ([Segment("a", 0, 123, 124)], "cannot send 124"),
        ([Segment("a", 0, 123, 0)], "cannot send 0"),
    ],
)
def test_bad_plans_are_refused(segments: list[Segment], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        Plan(tuple(Message((segment,)) for segment in segments)).check(LAYOUT)


def test_a_message_holds_neighbours():
    with pytest.raises(ValueError, match="not neighbours"):
        Plan((Message((Segment("last", 103, 20, 1), Segment("first", 0, 100, 1))),)).check(LAYOUT)


def test_what_32_bit_indices_cannot_reach_is_refused():
    large = Layout(("a", "b"), (2**30, 2**30))
    layer_wise(large, lambda name: 0.1).check(large)
    with pytest.raises(ConfigError, match="2,147,483,648 entries and needs 64-bit indices"):
        whole_gradient(large, 0.1).check(large)
    whole_gradient(large, None).check(large)

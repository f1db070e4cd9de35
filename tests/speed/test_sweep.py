"""Changes over bandwidth are found where they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.speed.sweep import RANGE, changes

edges = st.lists(st.floats(0.11, 390), min_size=0, max_size=4)


@given(edges)
def test_steps_are_found(edges: list[float]):
    """Steps at least a tenth apart, as seen from a grid of a seventh."""
    apart = [edge for i, edge in enumerate(sorted(edges)) if i == 0 or edge > 1.2 * sorted(edges)[i - 1]]
    found = changes(lambda gigabits: sum(gigabits >= edge for edge in apart))
    assert [change.bandwidth for change in found] == pytest.approx(apart, rel=1e-3)
    assert [(change.below, change.above) for change in found] == [(i, i + 1) for i in range(len(apart))]


def test_two_steps_between_neighbours_of_the_grid():
    found = changes(lambda gigabits: "a" if gigabits < 10.0 else "b" if gigabits < 10.1 else "c")
    assert [(change.below, change.above) for change in found] == [("a", "b"), ("b", "c")]
    assert [change.bandwidth for change in found] == pytest.approx([10.0, 10.1], rel=1e-3)


def test_what_never_changes():
    assert changes(lambda gigabits: RANGE[0] <= gigabits <= RANGE[1] * 1.001) == []

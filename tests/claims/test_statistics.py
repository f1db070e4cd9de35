"""Intervals, tests and sample sizes: against simulation, against each other, and where they have no spread."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from suite.claims.statistics import (
    ALPHA,
    CONFIDENCE,
    POWER,
    bootstrap_interval,
    equivalence,
    p_above,
    p_below,
    t_interval,
    values_needed,
)

samples = st.lists(st.floats(-10, 10).map(lambda x: round(x, 3)), min_size=3, max_size=8).map(np.array)


@given(samples, st.floats(-10, 10))
def test_the_interval_and_the_tests_say_the_same(values: np.ndarray, bound: float):
    low, high = t_interval(values)
    if abs(low - bound) > 1e-6 and abs(high - bound) > 1e-6:
        assert (p_above(values, bound) < ALPHA) == (low > bound)
        assert (p_below(values, bound) < ALPHA) == (high < bound)
    assert low <= values.mean() <= high or np.isclose(low, high)


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = [low <= 1 <= high for low, high in (t_interval(rng.normal(1, 2, 3)) for _ in range(2000))]
    assert np.mean(inside) == pytest.approx(CONFIDENCE, abs=0.02)


def test_bootstrap_intervals_repeat_and_agree_with_t_where_there_are_many_values():
    values = np.random.default_rng(1).normal(0, 1, 60)
    assert bootstrap_interval(values) == bootstrap_interval(values)
    assert bootstrap_interval(values) == pytest.approx(t_interval(values), abs=0.05)


def test_a_bootstrap_of_three_values_stays_within_them():
    low, high = bootstrap_interval(np.array([1.0, 2.0, 4.0]))
    assert 1 <= low < high <= 4


def test_values_that_agree_exactly_are_a_point():
    values = np.full(3, 0.5)
    assert t_interval(values) == bootstrap_interval(values) == (0.5, 0.5)
    assert p_above(values, 0.5) == 0 and p_above(values, 0.6) == 1 and p_below(values, 0.6) == 0


def test_equivalence_needs_both_sides():
    assert equivalence(np.array([0.1, -0.1, 0.05]), 0.3).shown
    one_sided = equivalence(np.array([0.4, 0.5, 0.45]), 0.3)
    assert not one_sided.shown and one_sided.p_low < ALPHA < one_sided.p_high


@pytest.mark.parametrize("low, high, mean", [(-1.0, None, 0.0), (None, 1.0, 0.2), (-1.0, 1.0, 0.0), (1.0, None, 0.2)])
def test_so_many_values_decide_as_often_as_promised(low, high, mean: float):
    """By simulation: with `values_needed` values the test decides with probability POWER, with fewer it does not."""
    count, rng = values_needed(mean, 1.5, low, high), np.random.default_rng(2)

    def decided(number: int) -> float:
        draws = rng.normal(mean, 1.5, (4000, number))
        rejected = np.full(4000, True)
        if low is not None:
            side = "greater" if mean > low else "less"
            rejected &= stats.ttest_1samp(draws, low, axis=1, alternative=side).pvalue < ALPHA
        if high is not None:
            rejected &= stats.ttest_1samp(draws, high, axis=1, alternative="less").pvalue < ALPHA
        return rejected.mean()

    assert decided(count) > POWER - 0.025
    assert decided(count - 2) < POWER + 0.01


def test_no_number_of_values_decides_a_mean_on_its_bound():
    assert values_needed(0.0, 1.0, 0.0, None) is None
    assert values_needed(0.001, 1.0, 0.0, None) is None  # more than a thousand
    assert values_needed(1.0, 1e-9, 0.0, 2.0) == 2

"""Intervals, tests and sample sizes for the mean of a few values: one a seed, or one an emulated iteration.

Values that compare two methods are already differences or ratios of runs with the same seed, so every test here is of
one sample. All of it is scipy's; what is ours is which test decides (docs/results.md).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

ALPHA = 0.05  # of every one-sided test
CONFIDENCE = 1 - 2 * ALPHA  # of the interval that lies inside a bound exactly when that bound's test says so
POWER = 0.80  # with which `values_needed` are to decide
_MOST = 1000  # values beyond which nobody counts
_RESAMPLES = 9999


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a mean between -margin and margin.

    Attributes:
        p_low, p_high: p values against a mean of at most -margin, and of at least margin.
    """

    margin: float
    p_low: float
    p_high: float

    @property
    def shown(self) -> bool:
        """Whether both tests reject."""
        return max(self.p_low, self.p_high) < ALPHA


def t_interval(values: np.ndarray) -> tuple[float, float]:
    """The t interval of the mean at CONFIDENCE; a point when all values agree exactly.

    Args:
        values: float [n], n at least 2.
    """
    mean, error = float(np.mean(values)), stats.sem(values)
    if error == 0:
        return mean, mean
    low, high = stats.t.interval(CONFIDENCE, len(values) - 1, loc=mean, scale=error)
    return float(low), float(high)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """The bootstrap interval of the mean at CONFIDENCE: bias-corrected and accelerated (BCa), percentiles where that
    has no value. Its draws are fixed, so equal values give equal intervals.

    Of three values there are only ten different resamples: it is then narrower than it should be, and decides nothing.

    Args:
        values: float [n], n at least 2.
    """
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    for method in ("BCa", "percentile"):
        found = stats.bootstrap(
            (values,), np.mean, n_resamples=_RESAMPLES, confidence_level=CONFIDENCE, method=method,
            rng=np.random.default_rng(0),
        ).confidence_interval  # fmt: skip
        if np.isfinite(found).all():
            break
    return float(found.low), float(found.high)


def p_above(values: np.ndarray, bound: float) -> float:
    """p value of the one-sided t test of a mean above `bound` against one of at most `bound`.

    Without spread there is no test: 0 where the values reach the bound, 1 where they do not.
    """
    if np.ptp(values) == 0:
        return float(values[0] < bound)
    return float(stats.ttest_1samp(values, bound, alternative="greater").pvalue)


def p_below(values: np.ndarray, bound: float) -> float:
    """The same of a mean below `bound`."""
    return p_above(-np.asarray(values), -bound)


def equivalence(values: np.ndarray, margin: float) -> Equivalence:
    """Test whether the mean lies within `margin` of zero, on either side."""
    return Equivalence(margin, p_above(values, -margin), p_below(values, margin))


def values_needed(mean: float, spread: float, low: float | None, high: float | None) -> int | None:
    """How many values would decide with probability POWER, if values scattered with this mean and standard deviation.

    Inside its bounds a mean has to be shown to lie within each of them; outside, to lie beyond one. The power of a
    one-sided t test is that of the noncentral t distribution; for two bounds it is at least what is counted here.

    Returns:
        None where more than a thousand are needed, or any number is too small: a mean on a bound.
    """
    rooms = [
        room
        for room in (None if low is None else mean - low, None if high is None else high - mean)
        if room is not None
    ]
    beyond = [-room for room in rooms if room < 0]
    effects = np.array(beyond or rooms) / spread
    if not effects.all():
        return None
    counts = np.arange(2, _MOST + 1)
    missed = np.zeros(len(counts))
    for effect in effects:
        critical = stats.t.ppf(1 - ALPHA, counts - 1)
        found = stats.nct.sf(critical, counts - 1, effect * np.sqrt(counts))
        missed += 1 - np.nan_to_num(found, nan=1.0)  # scipy gives up where the power is 1 to all digits
    enough = counts[1 - missed >= POWER]
    return int(enough[0]) if len(enough) else None

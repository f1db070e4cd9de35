"""Why delta exceeds 1 where it does, and the table of delta by kind of layer.

With x the mean over workers of what could have been sent and s the mean of what was sent, the error of sending s is
||x - s||^2 = ||x||^2 (1 - agreement + sent_energy), where

    agreement   = 2 <x, s> / ||x||^2
    sent_energy = ||s||^2 / ||x||^2

and k random entries would leave (1 - k/d) ||x||^2 on average. So delta <= 1 iff agreement - sent_energy >= k/d: what
the selection gains has to be at least the share k/d that random entries gain (our algebra; docs/results.md works an
example). The products <x, s> are not logged, but delta and norm_ratio = ||s|| / ||x|| give them.
"""

import numpy as np
import pandas as pd

from suite.record.kinds import KINDS, layer_kinds

# Why a value lies above 1, the worst first; together they are all such values. See `explain_delta`.
CAUSES = ("opposed", "overshoot", "short")


def explain_delta(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the columns agreement, sent_energy and cause.

    cause is empty where delta is at most 1 or has no value, and otherwise one of
        opposed: what was sent points against the mean, agreement < 0;
        overshoot: it points the right way but is so large that sending nothing had left less, agreement < sent_energy;
        short: sending helps, but less than k random entries would.

    Args:
        frame: with the columns d, k, delta and norm_ratio of assumption.parquet.
    """
    sent = frame["norm_ratio"] ** 2
    agreement = 1 + sent - frame["delta"] * (1 - frame["k"] / frame["d"])
    causes = np.select([~(frame["delta"] > 1), agreement < 0, agreement < sent], ["", *CAUSES[:2]], CAUSES[2])
    return frame.assign(agreement=agreement, sent_energy=sent, cause=causes)


def delta_by_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a kind of layer, segments that send a single entry apart, of one run's assumption rows.

    Columns: kind, k_is_one, segments, smallest_d, largest_d, points (values of delta), above_one, share (above_one
    over points), delta_median, delta_q05, delta_q25, delta_q75, delta_q95, delta_max, and how many of the values above
    1 have each of CAUSES.

    Args:
        frame: assumption.parquet of one run.
    """
    segments = frame.drop_duplicates("segment")
    kinds = dict(zip(segments["segment"], layer_kinds(segments["segment"], segments["d"]), strict=True))
    known = explain_delta(frame[frame["delta"].notna()])
    known = known.assign(
        kind=pd.Categorical(known["segment"].map(kinds), KINDS, ordered=True), k_is_one=known["k"] == 1,
        above=known["delta"] > 1, **{cause: known["cause"] == cause for cause in CAUSES},
    )  # fmt: skip
    quantiles = {f"delta_q{percent:02}": ("delta", _quantile(percent)) for percent in (5, 25, 75, 95)}
    table = known.groupby(["kind", "k_is_one"], observed=True).agg(
        segments=("segment", "nunique"), smallest_d=("d", "min"), largest_d=("d", "max"), points=("delta", "size"),
        above_one=("above", "sum"), share=("above", "mean"), delta_median=("delta", "median"), **quantiles,
        delta_max=("delta", "max"), **{cause: (cause, "sum") for cause in CAUSES},
    )  # fmt: skip
    return table.reset_index().astype({"kind": str})


def _quantile(percent: int):
    return lambda values: values.quantile(percent / 100)

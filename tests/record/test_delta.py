"""When and why delta exceeds 1: the algebra on random vectors, the example of docs/results.md, and the table."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import ROOT
from suite.measure.assumption import delta_of
from suite.record.delta import CAUSES, delta_by_kind, explain_delta

PAGE = (ROOT / "docs" / "results.md").read_text()


def top_k(workers: np.ndarray, k: int) -> np.ndarray:
    """What each worker [P, d] sends: its own k largest entries, zeros elsewhere."""
    chosen = np.argsort(-np.abs(workers), axis=-1, kind="stable")[..., :k]
    sent = np.zeros_like(workers)
    np.put_along_axis(sent, chosen, np.take_along_axis(workers, chosen, -1), -1)
    return sent


def logged(workers: np.ndarray, k: int) -> dict:
    """The row of assumption.parquet for the accumulated gradients [P, d] of one segment."""
    x, s = workers.mean(axis=0), top_k(workers, k).mean(axis=0)
    x2, s2, missed = x @ x, s @ s, (x - s) @ (x - s)
    d = workers.shape[1]
    return {"segment": "bn.weight", "d": d, "k": k, "delta": delta_of(missed, x2, k, d), "norm_ratio": (s2 / x2) ** 0.5,
            "x": x, "s": s}  # fmt: skip


@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(2, 40), st.data())
def test_agreement_follows_from_what_is_logged(seed: int, workers: int, d: int, data):
    k = data.draw(st.integers(1, d - 1))
    row = logged(np.random.default_rng(seed).standard_normal((workers, d)), k)
    found = explain_delta(pd.DataFrame([row])).iloc[0]
    x, s = row["x"], row["s"]
    assert found.agreement == pytest.approx(2 * (x @ s) / (x @ x), rel=1e-6, abs=1e-9)
    assert found.sent_energy == pytest.approx((s @ s) / (x @ x), rel=1e-9)
    gain = found.agreement - found.sent_energy
    assert row["delta"] == pytest.approx((1 - gain) / (1 - k / d))
    if abs(gain - k / d) > 1e-9:
        assert (row["delta"] > 1) == (gain < k / d) == (found.cause != "")


@pytest.mark.parametrize(
    "delta, norm_ratio, cause",
    [(0.99, 0.1, ""), (float("nan"), float("nan"), ""), (1.2, 0.2, "opposed"), (1.1, 0.9, "overshoot"),
     (1.01, 0.25, "short")],
)  # fmt: skip
def test_causes(delta: float, norm_ratio: float, cause: str):
    row = {"d": 16, "k": 1, "delta": delta, "norm_ratio": norm_ratio}
    assert explain_delta(pd.DataFrame([row])).cause.tolist() == [cause]


def test_the_page_works_its_example_right():
    """Two workers whose largest entries stand where the other holds the opposite sign; a short and a long segment."""
    first, second = np.full((2, 16), 0.5)
    first[:2], second[:2] = (3, -2), (-2, 3)
    row = logged(np.stack([first, second]), 1)
    found = explain_delta(pd.DataFrame([row])).iloc[0]
    assert row["s"][:2].tolist() == [1.5, 1.5] and row["x"][:2].tolist() == [0.5, 0.5]
    assert (found.agreement, found.sent_energy, found.cause) == (pytest.approx(0.75), pytest.approx(1.125), "overshoot")
    assert row["delta"] == pytest.approx(1.375 / (15 / 16))
    long = logged(np.stack([np.concatenate([own, np.full(1008, 0.5)]) for own in (first, second)]), 1)
    for number in (f"{row['delta']:.3f}", f"{long['delta']:.3f}", "0.75", "1.125"):
        assert number in PAGE


def test_the_pages_shares_above_one_are_what_noise_gives():
    """16 workers that hold independent normal numbers, 4,000 draws a row of the page's table."""
    rows = re.findall(r"^\| ([\d,]+) \| (\d+) \| ([\d.]+) \| ([\d.]+)% \|$", PAGE, re.MULTILINE)
    assert len(rows) == 6
    rng = np.random.default_rng(0)
    for d, k, mean, share in rows:
        d, k = int(d.replace(",", "")), int(k)
        workers = rng.standard_normal((4000, 16, d), dtype=np.float32)
        x, s = workers.mean(axis=1), top_k(workers, k).mean(axis=1)
        delta = ((x - s) ** 2).sum(axis=1) / ((1 - k / d) * (x**2).sum(axis=1))
        assert delta.mean() == pytest.approx(float(mean), abs=0.01)
        assert 100 * (delta > 1).mean() == pytest.approx(float(share), abs=1.5)


def test_the_table_counts_every_value_once():
    rng = np.random.default_rng(3)
    segments = {"conv.weight": (144, 2), "bn.weight": (16, 1), "bn.bias": (16, 1), "fc.bias": (10, 1)}
    rows = [
        logged(rng.standard_normal((4, d)), k) | {"segment": name}
        for _ in range(50)
        for name, (d, k) in segments.items()
    ]
    rows.append(rows[0] | {"delta": None, "norm_ratio": None})
    frame = pd.DataFrame(rows).astype({"delta": float, "norm_ratio": float})
    table = delta_by_kind(frame).set_index(["kind", "k_is_one"])
    assert list(table.index) == [("convolution", False), ("normalisation", True), ("bias", True)]
    assert table.points.tolist() == [50, 100, 50] and table.segments.tolist() == [1, 2, 1]
    assert table.above_one.sum() == (frame.delta > 1).sum() > 0
    assert (table[list(CAUSES)].sum(axis=1) == table.above_one).all()
    assert table.delta_max.max() == frame.delta.max()
    assert table.loc[("normalisation", True), "share"] == (frame.delta[frame.segment.str.startswith("bn")] > 1).mean()


def test_no_rows_give_no_rows():
    assert delta_by_kind(pd.DataFrame(columns=["segment", "d", "k", "delta", "norm_ratio"], dtype=float)).empty

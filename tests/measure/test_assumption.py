"""delta by its definition, at its extremes, and recomputed from saved tensors."""

import numpy as np
import pandas as pd
import pytest
import torch

from suite.measure import AssumptionMeter
from suite.measure.assumption import delta_of
from suite.plan import Layout, layer_wise, whole_gradient
from training import trainer


def rows_for(workers: list[np.ndarray], k: int) -> list[dict]:
    d = workers[0].size
    plan = whole_gradient(Layout(("x",), (d,)), k / d)
    sent = [np.where(np.isin(np.arange(d), np.argsort(-np.abs(x), kind="stable")[:k]), x, 0) for x in workers]
    mean = [np.mean(part, axis=0).astype(np.float32) for part in (workers, sent)]
    return AssumptionMeter(0, True).rows(plan, 1, *mean)


def test_workers_that_cancel_exceed_one():
    """Two workers opposite on their own top-k set: the aggregate delivers nothing, delta = 1 / (1 - k/d) exactly."""
    first, second = np.full(100, 0.5, np.float32), np.full(100, 0.5, np.float32)
    first[:10], second[:10] = 8.0, -8.0
    (row,) = rows_for([first, second], 10)
    assert row["delta"] == pytest.approx(1 / (1 - 0.1), abs=1e-9) and row["norm_ratio"] == 0


def test_one_worker_never_exceeds_one():
    rng = np.random.default_rng(0)
    for _ in range(50):
        (row,) = rows_for([rng.standard_normal(200).astype(np.float32)], 5)
        assert 0 < row["delta"] <= 1


def test_independent_workers_come_out_just_below_one():
    rng = np.random.default_rng(1)
    (row,) = rows_for([rng.standard_normal(20_000).astype(np.float32) for _ in range(16)], 20)
    assert row["delta"] == pytest.approx(0.9885, abs=2e-3)  # the figure of the project's notes for this case


def test_one_random_draw_scatters_around_the_closed_form():
    rng = np.random.default_rng(2)
    workers = [rng.standard_normal(2000).astype(np.float32) for _ in range(4)]
    plan = whole_gradient(Layout(("x",), (2000,)), 0.05)
    x, s = np.mean(workers, axis=0).astype(np.float32), np.zeros(2000, np.float32)
    rows = [AssumptionMeter(0, True).rows(plan, i, x, s)[0] for i in range(1, 200)]
    draws = np.array([1 / row["delta_random"] for row in rows])
    assert draws.mean() == pytest.approx(1 / rows[0]["delta"], abs=4 * draws.std() / len(draws) ** 0.5)


def test_no_value_where_there_is_none():
    plan = layer_wise(Layout(("zero", "whole"), (10, 4)), lambda name: 1.0 if name == "whole" else 0.1)
    x = np.concatenate([np.zeros(10), np.ones(4)]).astype(np.float32)
    zero, whole = AssumptionMeter(0, True).rows(plan, 1, x, x)
    assert zero["delta"] is None and zero["delta_random"] is None and zero["norm_ratio"] is None
    assert whole["delta"] is None and whole["norm_ratio"] == 1
    assert delta_of(0.0, 0.0, 1, 10) is None


@pytest.mark.parametrize("method", ["lags", "slgs"])
def test_the_recorded_delta_follows_from_saved_tensors(tiny, tmp_path, method: str):
    """Every worker's accumulated gradient and payload of one iteration, saved and put through the definition."""
    run = trainer(tiny(method={"name": method, "density": 0.1}, train={"max_iterations": 4}), tmp_path)
    saved: list[tuple[torch.Tensor, torch.Tensor]] = []
    compress = run.exchange.compressor.compress

    def saving(accumulation, message, state, rng):
        before = accumulation.residual + torch.cat(accumulation.gradients)
        payload, state = compress(accumulation, message, state, rng)
        sent = torch.zeros_like(before).index_add_(0, payload.indices, payload.values)
        saved.append((before, sent))
        return payload, state

    run.exchange.compressor.compress = saving
    run.run()
    table = pd.read_parquet(tmp_path / "assumption.parquet")
    segments = len(run.exchange.plan.segments)
    assert len(table) == 4 * segments and not table.isna().any().any()
    last = saved[-run.world.size :]
    x, s = (torch.stack(column).double().mean(dim=0) for column in zip(*last, strict=True))
    for segment, row in zip(
        sorted(run.exchange.plan.segments, key=lambda s: s.start), table.tail(segments).itertuples(), strict=True
    ):
        part = slice(segment.start, segment.stop)
        bound = (1 - segment.k / segment.size) * x[part].square().sum()
        assert row.segment == segment.name and (row.d, row.k) == (segment.size, segment.k)
        assert row.delta == pytest.approx(float((x - s)[part].square().sum() / bound), rel=1e-4)
        assert row.norm_ratio == pytest.approx(float(s[part].norm() / x[part].norm()), rel=1e-4)

"""What Alistarh et al. assume, on vectors whose answer is known, and in training."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exchanging import Party, normals
from suite.compress import TopK
from suite.measure.xi import xi_rows
from suite.plan import Layout, layer_wise, whole_gradient
from training import trainer


def measured(accs: list[torch.Tensor], gradient: torch.Tensor, k: int) -> dict[str, float]:
    layout = Layout(("x",), (gradient.numel(),))
    of = Party(TopK(), whole_gradient(layout, k / gradient.numel()), len(accs), layout)
    update = of.exchange(accs)
    return {row["quantity"]: row["value"] for row in xi_rows(of.plan, torch.stack(accs).mean(0), update, gradient)}


@given(seed=st.integers(0, 2**31), k=st.integers(1, 20))
@settings(max_examples=30)
def test_no_gap_with_one_worker_or_everything_sent(seed: int, k: int):
    accs = normals(seed, 3, 20)
    assert measured(accs[:1], accs[1], k)["xi"] == 0
    assert measured(accs, accs[1], 20)["xi"] == pytest.approx(0, abs=1e-6)


def test_the_definition_by_numpy():
    accs, gradient, k = normals(1, 4, 50), normals(2, 1, 50)[0], 5
    found = measured(accs, gradient, k)

    def top(x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        largest = np.argsort(-np.abs(x))[:k]
        out[largest] = x[largest]
        return out

    x, g = np.stack([a.numpy() for a in accs]).astype(float), gradient.numpy().astype(float)
    gap = top(x.mean(axis=0)) - np.mean([top(row) for row in x], axis=0)
    assert found["xi"] == pytest.approx(np.linalg.norm(gap) / np.linalg.norm(g), rel=1e-5)
    assert found["error_ratio"] == pytest.approx(np.linalg.norm(g - top(g)) / np.linalg.norm(g), rel=1e-5)


@given(seed=st.integers(0, 2**31), k=st.integers(1, 19))
def test_the_error_ratio_falls_with_k_and_keeps_the_contraction(seed: int, k: int):
    g = normals(seed, 1, 20)[0]
    fewer, more = (measured([g], g, n)["error_ratio"] for n in (k, k + 1))
    assert more < fewer <= (1 - k / 20) ** 0.5 + 1e-9


@pytest.mark.parametrize("shape, holds", [("normal", True), ("laplace", True), ("constant", False)])
@pytest.mark.parametrize("k", [1, 10, 100, 500])
def test_top_k_leaves_less_of_bell_shaped_vectors(shape: str, holds: bool, k: int):
    """(1 - k/d)^2 of the squared norm at most (arXiv 1911.08772); of equal entries 1 - k/d is left, which is more."""
    rng, d = np.random.default_rng(0), 1000
    vector = np.ones(d) if shape == "constant" else getattr(rng, shape)(size=d)
    gradient = torch.from_numpy(vector.astype(np.float32))
    assert (measured([gradient], gradient, k)["error_ratio"] <= 1 - k / d) == holds


def test_every_segment_has_its_own_and_a_zero_gradient_none():
    layout = Layout(("a", "b"), (10, 20))
    gradient = normals(1, 1, 30)[0]
    gradient[:10] = 0
    rows = xi_rows(layer_wise(layout, lambda name: 0.1), gradient, gradient, gradient)
    assert {row["segment"] for row in rows} == {"b"} and len(rows) == 2


def test_a_run_of_top_k_records_it(tiny, tmp_path):
    config = tiny(method={"name": "topk", "density": 0.05}, train={"max_iterations": 6})
    run, gradients = trainer(config, tmp_path), []
    real = run.exchange.finish

    def finish(*arguments):
        # lr * the average gradient is what was accumulated less the residuals.
        before = [worker.residual.clone() for worker in run.workers]
        outcome = real(*arguments)
        gradients.append((outcome.mean_accumulated - torch.stack(before).mean(0), outcome.mean_gradient))
        return outcome

    run.exchange.finish = finish
    run.run()
    assert len(gradients) == 6
    for expected, found in gradients:
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)
    table = pd.read_parquet(tmp_path / "observations.parquet")
    assert list(table.columns) == ["iteration", "segment", "quantity", "value"]
    assert set(table["quantity"]) == {"xi", "error_ratio"} and list(table["iteration"].unique()) == [1, 2, 3, 4, 5, 6]
    assert (table["value"] > 0).all()


def test_methods_that_observe_nothing_write_no_table(tiny, tmp_path):
    trainer(tiny(train={"max_iterations": 2}), tmp_path).run()
    assert not (tmp_path / "observations.parquet").exists() and (tmp_path / "assumption.parquet").exists()

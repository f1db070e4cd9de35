"""Selection against a full sort: magnitude first, then lowest index; kernels against torch operations, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suite.compress import accumulate_take_topk, native, select, select_topk
from suite.compress.select import accumulate, is_finite, new_selection, take_topk

SHAPES = {
    "random": lambda rng, size: rng.standard_normal(size),
    "equal": lambda rng, size: np.full(size, -2.5),
    "zero": lambda rng, size: np.zeros(size),
    "denormal": lambda rng, size: rng.integers(-50, 50, size) * 1.4e-45,
    "ties": lambda rng, size: rng.integers(-3, 4, size),
    "ascending": lambda rng, size: np.arange(size),
    "descending": lambda rng, size: np.arange(size)[::-1],
    "mostly zero": lambda rng, size: np.where(rng.random(size) < 0.02, rng.standard_normal(size), 0),
    "zeros first": lambda rng, size: np.where(np.arange(size) < 0.9 * size, 0, rng.standard_normal(size)),
    # What a strided sample sees is far from what there is.
    "large between samples": lambda rng, size: np.where(np.arange(size) % 16 == 1, 100.0, 1) * rng.random(size),
    "large at samples": lambda rng, size: np.where(np.arange(size) % 16 == 0, 100.0, 1) * rng.random(size),
    "with infinity": lambda rng, size: np.where(np.arange(size) == size // 2, -np.inf, rng.standard_normal(size)),
    "with NaN": lambda rng, size: np.where(np.arange(size) == size // 3, np.nan, rng.standard_normal(size)),
}


@pytest.fixture
def torch_only(monkeypatch):
    """Makes the suite treat this device as one that the kernels cannot reach."""
    monkeypatch.setattr(select, "on_cpu", lambda x: False)


def vector(shape: str, size: int) -> np.ndarray:
    return SHAPES[shape](np.random.default_rng(size), size).astype(np.float32)


def some_k(size: int) -> set[int]:
    return {1, max(1, size // 1000), max(1, size // 20), max(1, 3 * size // 4), size}


def by_sorting(x: np.ndarray, k: int) -> np.ndarray:
    magnitude = x.view(np.int32) & 0x7FFFFFFF
    order = np.lexsort((np.arange(x.size), -magnitude.astype(np.int64)))
    return np.sort(order[:k])


def assert_bits(found: torch.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(found.numpy().view(np.int32), expected.view(np.int32))


def assert_as_sorted(x: np.ndarray, k: int) -> None:
    before = x.copy()
    values, indices = select_topk(torch.from_numpy(x), k)
    expected = by_sorting(x, k)
    assert indices.dtype == torch.int32 and values.dtype == torch.float32
    np.testing.assert_array_equal(indices.numpy(), expected)
    assert_bits(values, x[expected])
    assert_bits(torch.from_numpy(x), before)


ANY_FLOATS = hnp.arrays(
    np.float32, st.integers(1, 2000), elements=st.floats(width=32) | st.sampled_from([0, 1, -1]), fill=st.just(0.5)
)


@settings(max_examples=200)
@given(ANY_FLOATS, st.data())
def test_any_vector(x: np.ndarray, data: st.DataObject):
    assert_as_sorted(x, data.draw(st.integers(1, x.size)))


@pytest.mark.parametrize("size", [1, 2, 513, 10_000, 1_000_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(size: int, shape: str):
    for k in some_k(size):
        assert_as_sorted(vector(shape, size), k)


@pytest.mark.parametrize("size", [1, 100, 10_000, 200_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_by_torch(size: int, shape: str, torch_only):
    for k in some_k(size):
        assert_as_sorted(vector(shape, size), k)


def run_fused(x: np.ndarray, residual: np.ndarray | None, scale: float, k: int) -> tuple[torch.Tensor, ...]:
    acc = torch.full((x.size,), 7.0)
    values, indices = new_selection(k, acc)
    residual = None if residual is None else native(torch.from_numpy(residual))
    gradient, (own, places, into) = native(torch.from_numpy(x)), map(native, (acc, indices, values))
    largest = accumulate_take_topk(own, gradient, residual, scale, k, 10, places, into)
    return acc, indices, values, torch.tensor(int(largest), dtype=torch.int32)


@settings(max_examples=100)
@given(ANY_FLOATS, st.sampled_from([1.0, 0.1, 3e30]), st.booleans(), st.data())
def test_fused_is_accumulate_then_select_then_clear(x, scale: float, with_residual: bool, data: st.DataObject):
    k = data.draw(st.integers(1, x.size))
    residual = np.random.default_rng(x.size).standard_normal(x.size).astype(np.float32) if with_residual else None
    acc, indices, values, largest = run_fused(x, residual, scale, k)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.float32(scale) * x if residual is None else residual + np.float32(scale) * x
    chosen = by_sorting(expected, k)
    np.testing.assert_array_equal(indices.numpy() - 10, chosen)
    # NaN's bits are the machine's business.
    np.testing.assert_array_equal(values.numpy(), expected[chosen])
    left = expected.copy()
    left[chosen] = 0
    np.testing.assert_array_equal(acc.numpy(), left)
    assert is_finite(int(largest)) == bool(np.isfinite(expected).all())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1.0, 0.05])
@pytest.mark.parametrize("with_residual", [False, True])
def test_kernels_and_torch_agree_bit_for_bit(shape: str, scale: float, with_residual: bool, monkeypatch):
    x = vector(shape, 30_000)
    residual = vector("random", 30_000) if with_residual else None
    for k in some_k(x.size):
        kernels = run_fused(x, residual, scale, k)
        with monkeypatch.context() as patch:
            patch.setattr(select, "on_cpu", lambda x: False)
            by_torch = run_fused(x, residual, scale, k)
        for ours, theirs in zip(kernels, by_torch, strict=True):
            if "NaN" in shape:
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
            else:
                assert torch.equal(ours.view(torch.int32), theirs.view(torch.int32))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("size", [1, 600, 5000])
def test_what_is_not_finite_is_found(bad: float, size: int):
    for place in {0, size // 2, size - 1}:
        x = torch.ones(size)
        x[place] = bad
        values, indices = new_selection(1, x)
        assert not is_finite(take_topk(native(x.clone()), 1, 0, native(indices), native(values)))
        assert not is_finite(accumulate(native(torch.empty(size)), native(x), None, 1.0))
    assert is_finite(accumulate(native(torch.empty(size)), native(torch.full((size,), 3e38)), None, 1.0))


@pytest.mark.parametrize("k", [0, 4, -1])
def test_k_outside_is_refused(k: int):
    with pytest.raises(ValueError, match="k must be between 1 and the number of elements 3"):
        select_topk(torch.zeros(3), k)


def test_other_types_are_refused():
    with pytest.raises(ValueError, match="float32 vector"):
        select_topk(torch.zeros(3, dtype=torch.float64), 1)
    with pytest.raises(ValueError, match="float32 vector"):
        select_topk(torch.zeros(3, 3), 1)


def test_vectors_that_need_longer_indices_are_refused():
    with pytest.raises(ValueError, match="64-bit indices"):
        select_topk(torch.empty(2**31, device="meta"), 1)

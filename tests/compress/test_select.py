"""Selection against a full sort: magnitude first, then lowest index."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from suite.compress import select_segments, select_topk
from suite.compress.select import _on_device


def by_sorting(x: np.ndarray, k: int) -> np.ndarray:
    order = np.lexsort((np.arange(x.size), -np.abs(x.astype(np.float64))))
    return np.sort(order[:k])


def assert_as_sorted(x: np.ndarray, k: int) -> None:
    values, indices = select_topk(torch.from_numpy(x), k)
    expected = by_sorting(x, k)
    assert indices.dtype == torch.int32 and values.dtype == torch.float32
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy().view(np.int32), x[expected].view(np.int32))
    magnitude = torch.from_numpy(x).view(torch.int32) & 0x7FFFFFFF
    np.testing.assert_array_equal(_on_device(magnitude, [x.size], [k]).numpy(), expected)


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(
        np.float32,
        st.integers(1, 300),
        elements=st.floats(width=32, allow_nan=False, allow_infinity=False) | st.sampled_from([0, 1, -1]),
    ),
    st.data(),
)
def test_any_vector(x: np.ndarray, data: st.DataObject):
    assert_as_sorted(x, data.draw(st.integers(1, x.size)))


@pytest.mark.parametrize("size", [1, 2, 1000, 100_000, 1_000_000])
@pytest.mark.parametrize(
    "shape", ["random", "equal", "zero", "denormal", "ties", "ascending", "descending", "mostly zero"]
)
def test_shapes(size: int, shape: str):
    rng = np.random.default_rng(size)
    x = {
        "random": lambda: rng.standard_normal(size),
        "equal": lambda: np.full(size, -2.5),
        "zero": lambda: np.zeros(size),
        "denormal": lambda: rng.integers(-50, 50, size) * 1.4e-45,
        "ties": lambda: rng.integers(-3, 4, size),
        "ascending": lambda: np.arange(size),
        "descending": lambda: np.arange(size)[::-1],
        "mostly zero": lambda: np.where(rng.random(size) < 0.02, rng.standard_normal(size), 0),
    }[shape]().astype(np.float32)
    for k in {1, max(1, size // 1000), max(1, size // 20), size}:
        assert_as_sorted(x, k)


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_segments_are_selected_independently(parts: list[tuple[int, float]], seed: int):
    sizes = [size for size, _ in parts]
    ks = [max(1, round(share * size)) for size, share in parts]
    x = torch.from_numpy(np.random.default_rng(seed).integers(-4, 5, sum(sizes)).astype(np.float32))
    values, indices = select_segments(x, sizes, ks)
    start, expected = 0, []
    for size, k in zip(sizes, ks, strict=True):
        expected.append(select_topk(x[start : start + size], k)[1] + start)
        start += size
    assert torch.equal(indices, torch.cat(expected)) and torch.equal(values, x[indices])


@pytest.mark.parametrize("k", [0, 4, -1])
def test_k_outside_is_refused(k: int):
    with pytest.raises(ValueError, match="k must be between 1 and the number of elements 3"):
        select_topk(torch.zeros(3), k)


def test_other_types_are_refused():
    with pytest.raises(ValueError, match="float32 vector"):
        select_topk(torch.zeros(3, dtype=torch.float64), 1)
    with pytest.raises(ValueError, match="float32 vector"):
        select_topk(torch.zeros(3, 3), 1)

"""rTop-k and random-k: what is drawn, how often, and what stays behind (Barnes et al.; Stich et al.)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from exchanging import Party, normals
from suite.compress import RandomTopK, TopK, WireFormat
from suite.plan import Layout, layer_wise, whole_gradient


def party(compressor, size: int, k: int, workers: int = 1, seed: int = 0) -> Party:
    layout = Layout(("x",), (size,))
    return Party(compressor, whole_gradient(layout, k / size), workers, layout, seed)


def chosen(of: Party, x: torch.Tensor) -> torch.Tensor:
    of.exchange([x])
    return of.found[0][0].indices.long()


@given(seed=st.integers(0, 2**31), size=st.integers(1, 60), data=st.data())
@settings(max_examples=60)
def test_sent_plus_left_is_accumulated_bit_for_bit(seed: int, size: int, data: st.DataObject):
    k, pool = data.draw(st.integers(1, size)), data.draw(st.none() | st.floats(1, 100))
    of, x = party(RandomTopK(pool), size, k, seed=seed), normals(seed, 1, size)[0]
    update = of.exchange([x])
    assert torch.equal((update + of.lefts[0]).view(torch.int32), x.view(torch.int32))
    assert not (update.bool() & of.lefts[0].bool()).any() and int(update.count_nonzero()) == k


@given(seed=st.integers(0, 2**31))
@settings(max_examples=20)
def test_rounded_values_leave_their_error_behind(seed: int):
    of, x = party(RandomTopK(3.0, WireFormat("bfloat16", "compact")), 50, 10, seed=seed), normals(seed, 1, 50)[0]
    assert torch.equal(of.exchange([x]) + of.lefts[0], x)


@given(seed=st.integers(0, 2**31), size=st.integers(1, 60), share=st.floats(0.01, 1))
@settings(max_examples=40)
def test_a_pool_of_k_is_top_k_bit_for_bit(seed: int, size: int, share: float):
    x, k = normals(seed, 3, size), max(1, int(share * size))
    ours, topk = (party(compressor, size, k, 3, seed) for compressor in (RandomTopK(1.0), TopK()))
    assert torch.equal(ours.exchange(x), topk.exchange(x))
    assert all(torch.equal(a, b) for a, b in zip(ours.lefts, topk.lefts, strict=True))


@pytest.mark.parametrize("r, k", [(60, 12), (12, 12), (300, 12)])
def test_expected_error(r: int, k: int):
    """E ||x - s||^2 = ||x||^2 - (k/r) ||top_r(x)||^2, within 3 sigma of the mean of 3,000 draws; for r = d it is the
    random-k of Mem-SGD: (1 - k/d) ||x||^2."""
    x, size, draws = normals(1, 1, 300)[0], 300, 3000
    of = party(RandomTopK(r / k), size, k)
    assert of.compressor.candidates(k, size) == r
    errors = []
    for _ in range(draws):
        of.exchange([x])
        errors.append(of.lefts[0].double().square().sum())
    errors, squares = torch.stack(errors), x.double().square().sort(descending=True).values
    expected = float(squares.sum() - k / r * squares[:r].sum())
    assert abs(float(errors.mean()) - expected) <= 3 * float(errors.std()) / math.sqrt(draws) + 1e-9
    assert expected <= (1 - k / size) * float(squares.sum()) + 1e-9


@given(seed=st.integers(0, 2**31), size=st.integers(1, 100), data=st.data())
def test_the_expected_error_is_a_contraction(seed: int, size: int, data: st.DataObject):
    r = data.draw(st.integers(1, size))
    k = data.draw(st.integers(1, r))
    squares = normals(seed, 1, size)[0].double().square().sort(descending=True).values
    left = squares.sum() - k / r * squares[:r].sum()
    assert left <= (1 - k / size) * squares.sum() + 1e-9


@pytest.mark.parametrize("pool, r", [(5.0, 20), (None, 50)])
def test_every_candidate_is_as_likely(pool, r: int):
    """Chi-square over the r candidates (r = d: k / d each), and nothing else is ever chosen."""
    x, of = normals(2, 1, 50)[0], party(RandomTopK(pool), 50, 4)
    counts = torch.zeros(50)
    for _ in range(2000):
        counts[chosen(of, x)] += 1
    largest = x.abs().argsort(descending=True)
    assert counts.sum() == 2000 * 4 and not counts[largest[r:]].any()
    # Draws without replacement are a little more even than the test assumes.
    assert chisquare(counts[largest[:r]].numpy()).pvalue > 1e-3


def test_workers_draw_their_own_and_the_same_again():
    x = normals(3, 1, 100)[0]
    a, b = (party(RandomTopK(8.0), 100, 5, workers=2) for _ in range(2))
    a.exchange([x, x]), b.exchange([x, x])
    assert not torch.equal(a.lefts[0], a.lefts[1])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(a.lefts, b.lefts, strict=True))


def test_every_segment_draws_its_k():
    layout = Layout(("a", "b"), (30, 70))
    plan = layer_wise(layout, lambda name: 0.1).merged()
    of = Party(RandomTopK(4.0), plan, 1, layout)
    update = of.exchange(normals(4, 1, 100))
    assert [int(update[:30].count_nonzero()), int(update[30:].count_nonzero())] == [3, 7]

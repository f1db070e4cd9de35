"""Unbiased sparsification (Wangni et al.): probabilities, draws, and both codes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exchanging import Party, normals, total
from suite.compress import Unbiased
from suite.compress.unbiased import closed_form_scale, greedy_scale, probabilities
from suite.plan import Layout, whole_gradient


def party(size: int, density: float, rule="greedy", coding="plain", workers: int = 1, seed: int = 0, eps=1.0) -> Party:
    layout = Layout(("x",), (size,))
    return Party(Unbiased(rule, 2, eps, coding), whole_gradient(layout, density), workers, layout, seed)


def heavy_tailed(seed: int, size: int) -> torch.Tensor:
    """Student's t with 3 degrees of freedom."""
    top, *below = normals(seed, 4, size)
    return top / torch.stack(below).square().mean(dim=0).sqrt()


def second_moment(g: torch.Tensor, p: torch.Tensor) -> float:
    kept = g != 0
    return float((g[kept].double().square() / p[kept]).sum())


@pytest.mark.parametrize("rule, coding", [("greedy", "hybrid"), ("closed_form", "hybrid"), ("uniform", "plain")])
def test_unbiased(rule: str, coding: str):
    """The mean of n draws lies within 4.5 sigma of g in every coordinate, sigma = |g| sqrt((1/p - 1) / n), and outside
    of 3 sigma in few."""
    size, draws = 200, 3000
    g = heavy_tailed(0, size)
    of = party(size, 0.1, rule, coding, eps=2.0)
    mean = torch.zeros(size, dtype=torch.float64)
    for _ in range(draws):
        mean += of.exchange([g]).double()
    scale = of.compressor._scale(g.abs(), 20)
    p = torch.full((size,), scale, dtype=torch.float64) if rule == "uniform" else probabilities(g, scale)
    sigma = g.abs().double() * ((1 / p - 1) / draws).sqrt()
    error = (mean / draws - g.double()).abs()
    sure = p == 1
    assert (error[sure] <= 1e-6 * g[sure].abs()).all()
    z = error[~sure] / sigma[~sure]
    assert z.max() <= 4.5 and (z > 3).double().mean() <= 0.02


@given(seed=st.integers(0, 10**6), size=st.integers(2, 400), density=st.floats(0.01, 1))
@settings(max_examples=60)
def test_greedy_reaches_the_expected_number(seed: int, size: int, density: float):
    g, k = heavy_tailed(seed, size), density * size
    p = probabilities(g, greedy_scale(g.abs(), k, iterations=50))
    assert float(p.sum()) == pytest.approx(k, rel=1e-9)
    assert float(probabilities(g, greedy_scale(g.abs(), k, iterations=2)).sum()) <= k * (1 + 1e-9)


def test_two_iterations_are_nearly_enough():
    for seed in range(20):
        g = heavy_tailed(seed, 1000)
        assert float(probabilities(g, greedy_scale(g.abs(), 50, iterations=2)).sum()) == pytest.approx(50, rel=0.01)


@given(seed=st.integers(0, 10**6), density=st.floats(0.01, 1))
def test_larger_entries_are_as_likely_or_likelier(seed: int, density: float):
    g = heavy_tailed(seed, 100)
    order = g.abs().argsort()
    for scale in (greedy_scale(g.abs(), 100 * density, 2), closed_form_scale(g.abs(), 1 / density)):
        p = probabilities(g, scale)[order]
        assert (p.diff() >= 0).all() and p.max() <= 1


@given(seed=st.integers(0, 2**31), workers=st.integers(1, 4), coding=st.sampled_from(["plain", "hybrid"]))
@settings(max_examples=20)
def test_density_one_is_the_identity(seed: int, workers: int, coding: str):
    g = normals(seed, workers, 30)
    of = party(30, 1.0, coding=coding, workers=workers)
    of.compressor.iterations = 50
    torch.testing.assert_close(of.exchange(g).double(), total(g) / workers, rtol=1e-6, atol=1e-7)


@given(seed=st.integers(0, 10**6), density=st.floats(0.02, 0.9))
@settings(max_examples=50)
def test_no_probabilities_of_the_same_sum_have_a_smaller_second_moment(seed: int, density: float):
    """Than uniform ones, whose is 1 / rho, and than random ones."""
    g = heavy_tailed(seed, 200)
    p = probabilities(g, greedy_scale(g.abs(), density * 200, iterations=50))
    least = second_moment(g, p)
    assert least <= float(g.double().square().sum()) / density * (1 + 1e-9)
    other = (p * torch.rand(200, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))).clamp(1e-6, 1)
    other = other * min(1, float(p.sum() / other.sum()))
    assert least <= second_moment(g, other) * (1 + 1e-9)


@given(seed=st.integers(0, 10**6), eps=st.floats(0.01, 20))
@settings(max_examples=50)
def test_the_closed_form_spends_its_variance_and_is_greedys_shape(seed: int, eps: float):
    g = heavy_tailed(seed, 200)
    scale = closed_form_scale(g.abs(), eps)
    p = probabilities(g, scale)
    assert second_moment(g, p) == pytest.approx((1 + eps) * float(g.double().square().sum()), rel=1e-9)
    assert greedy_scale(g.abs(), float(p.sum()), iterations=100) == pytest.approx(scale, rel=1e-6)


@given(seed=st.integers(0, 10**6), density=st.floats(0.01, 1), coding=st.sampled_from(["plain", "hybrid"]))
@settings(max_examples=60)
def test_what_is_packed_arrives_in_the_bytes_of_the_formula(seed: int, density: float, coding: str):
    of, g = party(300, density, coding=coding, seed=seed), heavy_tailed(seed, 300)
    update = of.exchange([g])
    sent = of.payloads[0]
    assert torch.equal(update.nonzero().flatten(), sent.indices.long())
    assert torch.equal(update[sent.indices.long()].view(torch.int32), sent.values.view(torch.int32))
    sure = int(sent.certain.sum())
    chance = sent.values.numel() - sure
    assert of.handed_in == (8 * (sure + chance) if coding == "plain" else 8 + 8 * sure + 4 * chance)
    # All entries kept by chance have one magnitude, and what nobody keeps is left for those who measure.
    assert len(sent.values[~sent.certain].abs().unique()) <= 1
    torch.testing.assert_close(update + of.lefts[0], g)


def test_as_many_entries_as_expected():
    """The mean of n counts of independent draws, within 4 sigma of sum p."""
    g, of, draws = heavy_tailed(3, 500), party(500, 0.1), 400
    counts = [int(of.exchange([g]).count_nonzero()) for _ in range(draws)]
    p = probabilities(g, greedy_scale(g.abs(), 50, 2))
    sigma = math.sqrt(float((p * (1 - p)).sum()) / draws)
    assert abs(sum(counts) / draws - float(p.sum())) <= 4 * sigma
    assert len(set(counts)) > 10


@pytest.mark.parametrize("rule, coding", [("greedy", "plain"), ("greedy", "hybrid"), ("closed_form", "plain"),
                                          ("closed_form", "hybrid"), ("uniform", "plain")])  # fmt: skip
def test_gradients_of_zeros_and_of_what_is_not_finite(rule: str, coding: str):
    of = party(20, 0.2, rule, coding, workers=2)
    few = torch.zeros(20)
    few[3] = -2.0
    if rule == "greedy":
        assert torch.equal(of.exchange([few] * 2), few)
    if rule != "uniform":
        assert not of.exchange([torch.zeros(20)] * 2).any()
    for bad in (math.nan, math.inf):
        g = normals(1, 1, 20)[0]
        g[5] = bad
        of.exchange([g, g])  # the iteration is skipped, but must come to its end

"""The identities every compressor keeps."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.compress import Accumulation, Identity, TopK, WireFormat
from suite.plan import Layout, layer_wise, whole_gradient

LAYOUT = Layout(("a", "b", "c"), (30, 7, 63))
PLANS = {
    "slgs": whole_gradient(LAYOUT, 0.1),
    "lags": layer_wise(LAYOUT, lambda name: 0.1),
    "lags merged": layer_wise(LAYOUT, lambda name: 0.1).merged(),
}


def accumulation(gradient: torch.Tensor, residual: torch.Tensor | None = None, layout: Layout = LAYOUT) -> Accumulation:
    """As back-propagation leaves it: a gradient a tensor, nothing accumulated yet."""
    made = Accumulation(layout, torch.full_like(gradient, 9.0), residual)
    made.gradients = list(gradient.split(list(layout.sizes)))
    return made


def compress_all(plan, of: Accumulation, compressor: TopK | None = None) -> torch.Tensor:
    """Dense form of everything the plan's messages carry; leaves in `of.acc` what they do not."""
    sent, rng = torch.zeros_like(of.acc), torch.Generator()
    for message in plan.messages:
        payload, _ = (compressor or TopK()).compress(of, message, {}, rng)
        sent[message.start + payload.indices.long()] += payload.values
    return sent


def normal(seed: int, size: int = LAYOUT.size) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", PLANS)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=25)
def test_sent_plus_left_is_accumulated_bit_for_bit(name: str, seed: int):
    gradient, residual = normal(seed), normal(seed + 1)
    of = accumulation(gradient, residual)
    sent = compress_all(PLANS[name], of)
    assert torch.equal((sent + of.acc).view(torch.int32), (residual + gradient).view(torch.int32))
    assert not (sent.bool() & of.acc.bool()).any()


@pytest.mark.parametrize("name", PLANS)
@given(seed=st.integers(0, 2**31))
@settings(max_examples=25)
def test_rounded_values_leave_their_error_behind(name: str, seed: int):
    gradient, residual = normal(seed), normal(seed + 1)
    of, exact = accumulation(gradient, residual), accumulation(gradient, residual)
    sent = compress_all(PLANS[name], of, TopK(WireFormat("bfloat16", "compact")))
    assert torch.equal(sent + of.acc, residual + gradient)
    assert torch.equal(sent != 0, compress_all(PLANS[name], exact) != 0)  # the same entries are chosen


def test_the_residual_is_only_read():
    residual = normal(1)
    compress_all(PLANS["lags"], accumulation(normal(2), residual))
    assert torch.equal(residual, normal(1))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("with_residual", [False, True])
def test_a_missing_gradient_counts_as_zero(name: str, with_residual: bool):
    gradient, residual = normal(1), normal(2) if with_residual else None
    gradient[30:37] = 0
    missing, zero = accumulation(gradient, residual), accumulation(gradient, residual)
    missing.gradients[1] = None
    assert torch.equal(compress_all(PLANS[name], missing), compress_all(PLANS[name], zero))
    assert torch.equal(missing.acc, zero.acc)


def test_finite_is_asked_of_everything_formed():
    for place in range(LAYOUT.size):
        gradient = normal(1)
        gradient[place] = float("nan")
        of = accumulation(gradient)
        compress_all(PLANS["lags"], of)
        assert not of.is_finite()
    of = accumulation(normal(1))
    compress_all(PLANS["lags"], of)
    assert of.is_finite()


@pytest.mark.parametrize("name", PLANS)
def test_exactly_k_entries_of_each_segment(name: str):
    plan = PLANS[name]
    sent = compress_all(plan, accumulation(normal(1)))
    for segment in plan.segments:
        assert int(sent[segment.start : segment.stop].count_nonzero()) == segment.k


@given(seed=st.integers(0, 2**31), size=st.integers(2, 200), share=st.floats(0.01, 1))
def test_contraction(seed: int, size: int, share: float):
    """||x - topk(x)||^2 <= (1 - k/d) ||x||^2 for every x (algorithm notes: SLGS invariant c)."""
    x, layout = normal(seed, size), Layout(("x",), (size,))
    plan, of = whole_gradient(layout, share), accumulation(x, layout=layout)
    k = plan.segments[0].k
    compress_all(plan, of)
    assert of.acc.double().square().sum() <= (1 - k / size) * x.double().square().sum() + 1e-9


@given(seed=st.integers(0, 2**31))
def test_lemma_with_the_largest_ratio(seed: int):
    """||x - concat TopK(x_l, k_l)||^2 <= (1 - 1/c_max) ||x||^2 (lemma of the LAGS paper)."""
    x, plan = normal(seed), PLANS["lags"]
    of = accumulation(x)
    compress_all(plan, of)
    c_max = max(segment.size / segment.k for segment in plan.segments)
    assert of.acc.double().square().sum() <= (1 - 1 / c_max) * x.double().square().sum() + 1e-9


def test_equal_magnitudes_meet_the_contraction_bound():
    layout = Layout(("x",), (40,))
    of = accumulation(torch.full((40,), -3.0), layout=layout)
    compress_all(whole_gradient(layout, 0.25), of)
    assert float(of.acc.square().sum()) == pytest.approx(0.75 * 40 * 9)


def test_identity_sends_all():
    message = whole_gradient(LAYOUT, None).messages[0]
    payload, _ = Identity().compress(accumulation(normal(1)), message, {}, torch.Generator())
    assert torch.equal(payload.values, normal(1))

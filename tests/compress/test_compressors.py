"""The identities every compressor keeps."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.compress import Gatherable, Identity, TopK
from suite.plan import Layout, layer_wise, whole_gradient

LAYOUT = Layout(("a", "b", "c"), (30, 7, 63))
PLANS = {
    "slgs": whole_gradient(LAYOUT, 0.1),
    "lags": layer_wise(LAYOUT, lambda name: 0.1),
    "lags merged": layer_wise(LAYOUT, lambda name: 0.1).merged(),
}


def compress_all(plan, acc: torch.Tensor) -> torch.Tensor:
    """Dense form of everything the plan's messages carry; leaves in acc what they do not."""
    sent, rng = torch.zeros_like(acc), torch.Generator()
    for message in plan.messages:
        payload, _ = TopK().compress(acc, message, {}, rng)
        sent[payload.indices] += payload.values
    return sent


@pytest.mark.parametrize("name", PLANS)
@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=25)
def test_sent_plus_left_is_accumulated_bit_for_bit(name: str, seed: int):
    before = torch.randn(LAYOUT.size, generator=torch.Generator().manual_seed(seed))
    acc = before.clone()
    sent = compress_all(PLANS[name], acc)
    assert torch.equal((sent + acc).view(torch.int32), before.view(torch.int32))
    assert not (sent.bool() & acc.bool()).any()


@pytest.mark.parametrize("name", PLANS)
def test_exactly_k_entries_of_each_segment(name: str):
    plan = PLANS[name]
    sent = compress_all(plan, torch.randn(LAYOUT.size, generator=torch.Generator().manual_seed(1)))
    for segment in plan.segments:
        assert int(sent[segment.start : segment.stop].count_nonzero()) == segment.k


@given(seed=st.integers(0, 2**31), size=st.integers(2, 200), share=st.floats(0.01, 1))
@settings(deadline=None)
def test_contraction(seed: int, size: int, share: float):
    """||x - topk(x)||^2 <= (1 - k/d) ||x||^2 for every x (algorithm notes: SLGS invariant c)."""
    x = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    plan = whole_gradient(Layout(("x",), (size,)), share)
    k, left = plan.segments[0].k, x.clone()
    compress_all(plan, left)
    assert left.double().square().sum() <= (1 - k / size) * x.double().square().sum() + 1e-9


@given(seed=st.integers(0, 2**31))
@settings(deadline=None)
def test_lemma_with_the_largest_ratio(seed: int):
    """||x - concat TopK(x_l, k_l)||^2 <= (1 - 1/c_max) ||x||^2 (lemma of the LAGS paper)."""
    x = torch.randn(LAYOUT.size, generator=torch.Generator().manual_seed(seed))
    plan, left = PLANS["lags"], x.clone()
    compress_all(plan, left)
    c_max = max(segment.size / segment.k for segment in plan.segments)
    assert left.double().square().sum() <= (1 - 1 / c_max) * x.double().square().sum() + 1e-9


def test_equal_magnitudes_meet_the_contraction_bound():
    left = torch.full((40,), -3.0)
    compress_all(whole_gradient(Layout(("x",), (40,)), 0.25), left)
    assert float(left.square().sum()) == pytest.approx(0.75 * 40 * 9)


def test_packing_keeps_every_bit():
    payload = Gatherable(
        torch.tensor([1.5, -0.0, 1e-45, float("nan")]), torch.tensor([3, 1, 2, 2**31 - 1], dtype=torch.int32)
    )
    back = Gatherable.unpack(payload.pack())
    assert payload.pack().nbytes == 8 * 4
    assert torch.equal(back.indices, payload.indices)
    assert torch.equal(back.values.view(torch.int32), payload.values.view(torch.int32))


def test_identity_sends_all():
    acc = torch.randn(LAYOUT.size)
    payload, _ = Identity().compress(acc, whole_gradient(LAYOUT, None).messages[0], {}, torch.Generator())
    assert torch.equal(payload.values, acc)

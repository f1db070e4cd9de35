"""Packing: every bit arrives, and the size is what the formula says."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.compress import Gatherable, WireFormat

FORMATS = [WireFormat(values, indices) for values in ("float32", "bfloat16") for indices in ("int32", "compact")]


def some_indices(span: int, k: int, seed: int) -> torch.Tensor:
    return torch.randperm(span, generator=torch.Generator().manual_seed(seed))[:k].sort().values.to(torch.int32)


@pytest.mark.parametrize("wire", FORMATS, ids=str)
@given(span=st.integers(1, 200_000), share=st.floats(1e-5, 1), seed=st.integers(0, 2**31), data=st.data())
@settings(max_examples=60)
def test_what_is_packed_arrives(wire: WireFormat, span: int, share: float, seed: int, data: st.DataObject):
    k = max(1, int(share * span))
    indices = some_indices(span, k, seed)
    if data.draw(st.booleans(), label="crowded at the end"):
        indices = torch.arange(span - k, span, dtype=torch.int32)
    values = wire.round_values(torch.randn(k, generator=torch.Generator().manual_seed(seed)))
    payload = Gatherable(values, indices, span, wire)
    buffer = payload.pack()
    assert buffer.dtype == torch.int32 and buffer.nbytes == wire.nbytes(k, span)
    back = payload.unpack(buffer)
    assert torch.equal(back.indices, indices)
    assert torch.equal(back.values.view(torch.int32), values.view(torch.int32))


def test_sizes_by_the_formula():
    k, span = 25_557, 25_557_032
    assert WireFormat().nbytes(k, span) == 8 * k
    assert WireFormat("bfloat16").nbytes(k, span) == math.ceil(2 * k / 4) * 4 + 4 * k
    # At density 0.001 distances of a thousand take five bytes each as steps of 255; two bytes within blocks take less.
    assert (
        WireFormat(indices="compact").nbytes(k, span)
        == 4 * k + math.ceil((2 * k + 4 * math.ceil(span / 65536)) / 4) * 4
    )
    # At density 0.05 one byte a distance is enough, and few need a second one.
    k = span // 20
    assert WireFormat(indices="compact").nbytes(k, span) == 4 * k + math.ceil((k + span // 255) / 4) * 4


@pytest.mark.parametrize("share", [0.0005, 0.05])
def test_both_codes_are_used_and_smaller(share: float):
    k, span = int(1_000_000 * share), 1_000_000
    compact = WireFormat(indices="compact")
    assert compact._by_blocks(k, span) == (share == 0.0005)
    assert compact.nbytes(k, span) < 0.8 * WireFormat().nbytes(k, span)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=50))
@settings(max_examples=300)
def test_rounding_loses_nothing(numbers: list[float]):
    """What is sent and the error of rounding add up to the value, bit for bit, up to the ends of the number range."""
    values = torch.tensor(numbers, dtype=torch.float32)
    sent = WireFormat("bfloat16").round_values(values)
    assert torch.equal(sent.to(torch.bfloat16).to(torch.float32), sent)
    finite = torch.isfinite(values)
    assert torch.equal(torch.isfinite(sent), finite)
    assert torch.equal((sent + (values - sent))[finite], values[finite])


def test_rounding_is_to_the_nearest():
    values = torch.randn(1000)
    assert torch.equal(WireFormat("bfloat16").round_values(values), values.to(torch.bfloat16).float())
    largest = torch.tensor([torch.finfo(torch.float32).max])
    assert torch.isfinite(WireFormat("bfloat16").round_values(largest)).all()


def test_every_bit_of_a_float_survives():
    values = torch.tensor([1.5, -0.0, 1e-45, float("nan")])
    payload = Gatherable(values, torch.tensor([0, 1, 2, 2**31 - 1], dtype=torch.int32), 2**31 - 1)
    assert torch.equal(payload.unpack(payload.pack()).values.view(torch.int32), values.view(torch.int32))

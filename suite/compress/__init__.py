"""Accumulation, selection, wire formats, payloads and compressors: pure functions with explicit state.

Every compressor leaves in the accumulated gradient what it did not send. Where it sends entries as they are, sent +
left == accumulated, bit for bit.
"""

from suite.compress.accumulation import Accumulation
from suite.compress.compressors import Compressor, Identity, RandomTopK, Stateless, TopK, VelocityTopK
from suite.compress.low_rank import AlternatingLowRank, PowerSGD
from suite.compress.payload import Gatherable, Payload, Summable
from suite.compress.select import accumulate_take_topk, native, select_topk
from suite.compress.tree import TreeTopK
from suite.compress.unbiased import Unbiased
from suite.compress.wire import WireFormat

__all__ = [
    "Accumulation",
    "AlternatingLowRank",
    "Compressor",
    "Gatherable",
    "Identity",
    "Payload",
    "PowerSGD",
    "RandomTopK",
    "Stateless",
    "Summable",
    "TopK",
    "TreeTopK",
    "Unbiased",
    "VelocityTopK",
    "WireFormat",
    "accumulate_take_topk",
    "native",
    "select_topk",
]

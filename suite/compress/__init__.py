"""Accumulation, selection, wire formats, payloads and compressors: pure functions with explicit state.

Every compressor leaves in the accumulated gradient what it did not send: sent + left == accumulated, bit for bit.
"""

from suite.compress.accumulation import Accumulation
from suite.compress.compressors import Compressor, Identity, TopK
from suite.compress.payload import Gatherable, Summable
from suite.compress.select import accumulate_take_topk, native, select_topk
from suite.compress.wire import WireFormat

__all__ = [
    "Accumulation",
    "Compressor",
    "Gatherable",
    "Identity",
    "Summable",
    "TopK",
    "WireFormat",
    "accumulate_take_topk",
    "native",
    "select_topk",
]

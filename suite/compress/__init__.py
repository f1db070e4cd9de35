"""Selection, payloads and compressors: pure functions with explicit state.

Every compressor leaves in its input what it did not send: sent + left == accumulated, bit for bit.
"""

from suite.compress.compressors import Compressor, Identity, TopK
from suite.compress.payload import Gatherable, Summable
from suite.compress.select import select_segments, select_topk

__all__ = ["Compressor", "Gatherable", "Identity", "Summable", "TopK", "select_segments", "select_topk"]

"""Mem-SGD: k entries, the largest or random ones, with the rest kept in memory (Stich et al. 2018, arXiv 1809.07599).

Each worker sends 8k bytes, gathered by all: 8k (P-1) on the wire. The authors count 64k bits as well: top-1 of 2,000
entries takes 46 times less than the 2947 bits of 4-bit QSGD (their notebook). Their code is sequential: one worker. The
rest of their method are settings of the optimiser: the rate gamma / (lambda (t + a)) is `optimizer.inverse_time` with
`lr` as gamma, and the weighted average of iterates `optimizer.average`.
"""

from typing import Literal

from pydantic import Field

from suite.methods.base import Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class MemSGDSettings(SparseSettings):
    """Settings of Mem-SGD; `error_feedback` is its memory."""

    name: Literal["mem_sgd"] = "mem_sgd"
    lr_placement: Literal["outside", "inside"] = Field("inside", description="the paper's is inside; see SLGS")
    selection: Literal["top", "random"] = Field("top", description="k largest entries, or k drawn from all d")


@register
class MemSGD(Method):
    """Top-k or random-k of memory plus lr * gradient: any contraction converges at the rate of plain SGD."""

    Settings = MemSGDSettings
    label = "Mem-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, self.settings.density_at(epoch))

    def compressor(self):
        from suite.compress import RandomTopK, TopK

        wire = self.settings.wire.format()
        return TopK(wire) if self.settings.selection == "top" else RandomTopK(None, wire)

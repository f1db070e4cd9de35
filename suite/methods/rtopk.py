"""rTop-k: k entries drawn at random from the r largest, with error feedback (Barnes et al. 2020, arXiv 2005.10761).

Each worker sends 8k bytes, gathered by all: 8k (P-1) on the wire, as SLGS-SGD. Values travel unscaled, so the step is
biased and error feedback makes up for it. Of an accumulated x the squared norm ||x||^2 - (k/r) ||top_r(x)||^2 stays
behind on average (our algebra): what top-k leaves at r = k, what random-k leaves at r = d.
"""

from typing import Literal

from pydantic import Field

from suite.methods.base import Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class RTopKSettings(SparseSettings):
    """Settings of rTop-k."""

    name: Literal["rtopk"] = "rtopk"
    pool: float = Field(
        4.0, ge=1, description="r / k, cut off at d / k: 1 is top-k, d / k random-k. The paper's is unknown to us"
    )


@register
class RTopK(Method):
    """Random among the largest: between top-k, which neglects small entries, and random-k, which ignores size."""

    Settings = RTopKSettings
    label = "rTop-k"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, self.settings.density_at(epoch))

    def compressor(self):
        from suite.compress import RandomTopK

        return RandomTopK(self.settings.pool, self.settings.wire.format())

"""Top-k SGD as analysed by Alistarh et al. 2018 (arXiv 1809.10505): the learning rate inside of the accumulated sum.

Each worker sends 8k bytes, gathered by all: 8k (P-1) on the wire. It is SLGS-SGD with `lr_placement: inside`, and what
its analysis assumes is measured as it trains: see suite/measure/xi.py.
"""

from typing import Literal

from pydantic import Field

from suite.methods.base import Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class TopKSettings(SparseSettings):
    """Settings of top-k SGD."""

    name: Literal["topk"] = "topk"
    lr_placement: Literal["outside", "inside"] = Field("inside", description="the paper's is inside; see SLGS")


@register
class TopKSGD(Method):
    """The sparsified SGD of the first convergence proofs, with its assumption's xi measured."""

    Settings = TopKSettings
    label = "Top-k SGD"
    measures_xi = True

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, self.settings.density_at(epoch))

    def compressor(self):
        from suite.compress import TopK

        return TopK(self.settings.wire.format())

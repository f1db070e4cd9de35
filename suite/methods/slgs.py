"""SLGS-SGD: one top-k over the whole gradient after back-propagation, with error feedback (also called TopK-SGD)."""

from typing import Literal

from suite.methods.base import Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class SLGSSettings(SparseSettings):
    """Settings of SLGS-SGD."""

    name: Literal["slgs"] = "slgs"


@register
class SLGS(Method):
    """The paper's sparse baseline: the gradient is one layer, so nothing can be sent before the last one is ready."""

    Settings = SLGSSettings
    label = "SLGS-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, self.settings.density_at(epoch))

    def compressor(self):
        from suite.compress import TopK

        return TopK(self.settings.wire.format())

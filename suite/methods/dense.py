"""Dense S-SGD: the whole gradient, summed by all-reduce, without compression."""

from typing import Literal

from suite.methods.base import Method, MethodSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class DenseSettings(MethodSettings):
    """Dense S-SGD has no settings of its own."""

    name: Literal["dense"] = "dense"


@register
class Dense(Method):
    """The baseline of every comparison: one all-reduce of d entries an iteration."""

    Settings = DenseSettings
    label = "Dense S-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, density=None)

    def compressor(self):
        from suite.compress import Identity

        return Identity()

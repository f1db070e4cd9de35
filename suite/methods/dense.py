"""Dense S-SGD: the whole gradient, summed by all-reduce, without compression."""

from typing import Literal

from suite.methods.base import LayerMessages, Method
from suite.methods.registry import register
from suite.plan import Layout, Plan, layer_wise


class DenseSettings(LayerMessages):
    """Settings of dense S-SGD: `messages: layer` is wait-free back-propagation (WFBP), `merged` is optimal MG-WFBP."""

    name: Literal["dense"] = "dense"


@register
class Dense(Method):
    """The baseline of every comparison: d entries an iteration by all-reduce."""

    Settings = DenseSettings
    label = "Dense S-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return self.in_messages(layer_wise(layout, lambda name: None), layout)

    def compressor(self):
        from suite.compress import Identity

        return Identity()

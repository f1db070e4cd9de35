"""Deep gradient compression: momentum before the choice (Lin et al. 2018, arXiv 1712.01887).

Each worker has a momentum of its own, u <- mu u + g, and accumulates v <- v + u; the k largest of every layer's v
travel, as in LAGS-SGD, and there v and u begin anew. Momentum after aggregation, which all other methods here have,
knows an entry's gradient only once it is sent, and then pushes on for 1 / (1 - mu) iterations whatever has come since.

Each worker sends 8k bytes, gathered by all: 8k (P-1) on the wire. Of the authors' method two parts are settings of the
frame, the warm-up of densities and of the rate. Nesterov's form, their sampled threshold and clipping by worker are not
here. Vectors that travel whole are gathered with the rest, indices and all, where their code all-reduces them; and
weight decay is added after averaging and without momentum, where their code has a momentum for it: divide
`optimizer.weight_decay` by 1 - mu to decay as much in the long run.
"""

from typing import Literal

from pydantic import Field

from suite.methods.base import LayerMessages, Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, layer_wise


class DGCSettings(SparseSettings, LayerMessages):
    """Settings of deep gradient compression."""

    name: Literal["dgc"] = "dgc"
    momentum: float = Field(0.9, ge=0, lt=1, description="mu of every worker; the optimiser's own has to be 0")
    masking: bool = Field(True, description="momentum begins anew where an entry was sent (momentum factor masking)")
    vectors: Literal["whole", "sparse"] = Field(
        "whole", description="how tensors of one dimension travel; whole: all their entries, as in the authors' code"
    )

    def check_momentum(self, momentum: float) -> None:
        if momentum:
            raise ValueError(
                f"method dgc has a momentum of its own, and {momentum:g} after it would be a second one; set "
                "optimizer.momentum to 0 and method.momentum to what it was"
            )


@register
class DGC(Method):
    """Layer-wise top-k of what momentum has made of each worker's own gradients."""

    Settings = DGCSettings
    label = "DGC"
    remembered = 1

    def plan(self, layout: Layout, epoch: int) -> Plan:
        whole = set()
        if self.settings.vectors == "whole":
            whole = {name for name, shape in zip(layout.names, layout.known_shapes, strict=True) if len(shape) < 2}
        density = self.settings.density_at(epoch)
        return self.in_messages(layer_wise(layout, lambda name: 1.0 if name in whole else density), layout)

    def compressor(self):
        from suite.compress import VelocityTopK

        return VelocityTopK(self.settings.momentum, self.settings.masking, self.settings.wire.format())

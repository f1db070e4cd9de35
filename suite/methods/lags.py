"""LAGS-SGD: top-k of each layer on its own, with error feedback (arXiv 1911.08727, Algorithm 1)."""

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field

from suite.config.experiment import Density
from suite.methods.base import Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, layer_wise


class LAGSSettings(SparseSettings):
    """Settings of LAGS-SGD."""

    name: Literal["lags"] = "lags"
    layer_density: dict[str, Density] = Field(
        {},
        description="density by parameter name or pattern ('fc.*'); the first match wins, `density` is for the rest",
    )
    messages: Literal["layer", "one"] = Field(
        "one",
        description="layer: a message a layer, as the paper draws it; one: all layers in one message, which selects "
        "the same entries and saves start-ups while nothing overlaps (our choice)",
    )


@register
class LAGS(Method):
    """A layer is a parameter tensor, as in the authors' code, and sends k = max(floor(rho d), 1) entries."""

    Settings = LAGSSettings
    label = "LAGS-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        warming_up = epoch < len(self.settings.density_warmup)

        def density_of(name: str) -> float:
            given = (rho for pattern, rho in self.settings.layer_density.items() if fnmatchcase(name, pattern))
            return self.settings.density_at(epoch) if warming_up else next(given, self.settings.density)

        plan = layer_wise(layout, density_of)
        return plan.merged() if self.settings.messages == "one" else plan

    def compressor(self):
        from suite.compress import TopK

        return TopK()

"""LAGS-SGD: top-k of each layer on its own, with error feedback (arXiv 1911.08727, Algorithm 1)."""

from fnmatch import fnmatchcase
from typing import Literal

from pydantic import Field, model_validator

from suite.config.experiment import Density
from suite.config.strict import Strict
from suite.methods.base import LayerMessages, Method, SparseSettings
from suite.methods.registry import register
from suite.plan import Layout, Plan, adapt, layer_wise


class AdaptiveSettings(Strict):
    """The adaptive compression ratio, planned from `costs`: c(l) = d(l) / k(l), between 1 and c_u."""

    rule: Literal["later", "next"] = Field(
        "later",
        description="what a layer's exchange may hide behind. next: the backward time of the next layer to be "
        "back-propagated, as the paper's formula reads; later: everything still to come that earlier messages leave, "
        "which never predicts a longer iteration than next",
    )
    c_u: float = Field(1000, ge=1, description="largest ratio, and that of layers that cannot hide")


class LAGSSettings(SparseSettings, LayerMessages):
    """Settings of LAGS-SGD."""

    name: Literal["lags"] = "lags"
    layer_density: dict[str, Density] = Field(
        {},
        description="density by parameter name or pattern ('fc.*'); the first match wins, `density` is for the rest",
    )
    adaptive: AdaptiveSettings | None = Field(
        None, description="choose every layer's ratio from `costs`; then densities are only used for the warm-up"
    )

    @model_validator(mode="after")
    def _one_source_of_ratios(self) -> "LAGSSettings":
        if self.adaptive and self.layer_density:
            raise ValueError("layer_density fixes ratios that adaptive would choose; leave one of the two out")
        return self

    @property
    def needs_costs(self) -> str | None:
        return "adaptive" if self.adaptive else super().needs_costs


@register
class LAGS(Method):
    """A layer is a parameter tensor, as in the authors' code, and sends k = max(floor(rho d), 1) entries."""

    Settings = LAGSSettings
    label = "LAGS-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        settings = self.settings
        warming_up = epoch < len(settings.density_warmup)

        def density_of(name: str) -> float:
            given = (rho for pattern, rho in settings.layer_density.items() if fnmatchcase(name, pattern))
            return settings.density_at(epoch) if warming_up else next(given, settings.density)

        if settings.adaptive and not warming_up:
            least = layer_wise(layout, lambda name: 1 / settings.adaptive.c_u)
            adapted = adapt(least, layout, self.costs, settings.adaptive.rule, self.entry_bytes, self.collective)
            return self.in_messages(adapted, layout)
        return self.in_messages(layer_wise(layout, density_of), layout)

    def compressor(self):
        from suite.compress import TopK

        return TopK(self.settings.wire.format())

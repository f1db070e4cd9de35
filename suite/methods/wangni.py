"""Unbiased sparsification (Wangni et al. 2018, arXiv 1710.09854): entries kept by chance, scaled up, no residual.

The expected number of entries is k = rho d. Coded plainly, a worker sends 8 bytes for each that it keeps, gathered by
all: 8 rho d (P-1) on the wire on average. `coding: hybrid` is the paper's idea, as we know it: entries kept for certain
take 8 bytes, and as all others have the same magnitude, theirs is sent once and each takes 4, its index and its sign
(32-bit indices, where the paper counts log2 d bits); planning counts 8 for all. Bytes in a run's tables are those that
were sent, the mean over workers.
"""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from suite.methods.base import DensitySettings, Method
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class WangniSettings(DensitySettings):
    """Settings of unbiased sparsification."""

    name: Literal["wangni"] = "wangni"
    rule: Literal["greedy", "closed_form", "uniform"] = Field(
        "greedy",
        description="probability of keeping an entry. greedy: in proportion to its magnitude, at most 1, rho d entries "
        "on average; closed_form: the same shape, with as few entries as eps allows, so that `density` is only what "
        "planning expects; uniform: rho for all, for comparison",
    )
    iterations: PositiveInt = Field(2, description="of the greedy rule, in which probabilities above 1 are dealt out")
    eps: PositiveFloat = Field(
        1.0, description="of the closed form: the second moment is at most 1 + eps times the gradient's"
    )
    coding: Literal["plain", "hybrid"] = Field(
        "plain", description="hybrid: the magnitude that entries kept by chance share is sent once"
    )

    @model_validator(mode="after")
    def _one_magnitude(self) -> "WangniSettings":
        if self.rule == "uniform" and self.coding == "hybrid":
            raise ValueError("coding hybrid needs entries of one magnitude, and rule uniform makes others; set plain")
        return self


@register
class Wangni(Method):
    """Each entry is kept with a probability in proportion to its magnitude, so that the average stays the gradient."""

    Settings = WangniSettings
    label = "Unbiased sparsification"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, self.settings.density_at(epoch))

    def compressor(self):
        from suite.compress import Unbiased

        settings = self.settings
        return Unbiased(settings.rule, settings.iterations, settings.eps, settings.coding)

"""Local AdaAlter: AdaGrad that may step locally, as squares count from the next average on only (arXiv 1911.09030).

Each worker: w -= lr g / sqrt(B2 + s eps^2) with B2 frozen since the last average and s steps after it; A2 += g^2. After
H steps parameters and A2 are averaged over workers, and B2 = A2. A worker sends 2 * 4d * 2(P-1)/P / H bytes an
iteration. The warm-up and `placeholder: constant` follow the released code; that s multiplies eps^2 is our memory of
the paper.
"""

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from suite.methods.base import MethodSettings
from suite.methods.local import Averaging, Local, LocalMethod, Step, every
from suite.methods.registry import register


class LocalAdaAlterSettings(MethodSettings):
    """Settings of local AdaAlter; the optimiser's momentum should be 0."""

    name: Literal["local_adaalter"] = "local_adaalter"
    period: PositiveInt = Field(4, description="H, steps between averages; 1 is AdaAlter")
    eps: PositiveFloat = Field(1.0, description="added as eps^2 for every step whose squares are not in B2 yet")
    placeholder: Literal["growing", "constant"] = Field(
        "growing", description="growing: s eps^2 after s steps; constant: eps^2, as the released code has it"
    )
    warmup_steps: NonNegativeInt = Field(
        0, description="first steps that average every time (the released code: 600, while lr warms up)"
    )


@register
class LocalAdaAlter(LocalMethod):
    """Averages parameters and accumulated squares, which are the mean over workers of each worker's own."""

    Settings = LocalAdaAlterSettings
    label = "Local AdaAlter"
    averaged = ("squares",)

    def init(self, parameters) -> Local:
        import torch

        return {"squares": torch.zeros_like(parameters), "frozen": torch.zeros_like(parameters)}

    def direction(self, gradient, local: Local, step: Step):
        settings = self.settings
        steps = step.since if settings.placeholder == "growing" else 1
        denominator = (local["frozen"] + steps * settings.eps**2).sqrt_()
        local["squares"].addcmul_(gradient, gradient)
        return gradient.div_(denominator)

    def group(self, step: int, workers: int) -> int | None:
        settings = self.settings
        return workers if step <= settings.warmup_steps else every(settings.period, step, workers)

    def after_average(self, local: Local, seen, step: int) -> None:
        local["frozen"].copy_(local["squares"])

    def averages(self, workers: int) -> list[Averaging]:
        return [Averaging(workers, 2, 1 / self.settings.period)]

"""Local SGDA: local descent in x and ascent in y at once, averaged every tau steps (arXiv 2102.13152).

Which parameters are y is the model's to say, as is the set y is projected on. A worker sends
4 (d_x + d_y) 2(P-1)/P / tau bytes an iteration. Local SGDA+ takes the gradient in y at a snapshot of x, the average
over workers, refreshed every S steps, and needs a second back-propagation for it (our memory of the paper).
"""

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from suite.methods.base import MethodSettings
from suite.methods.local import Averaging, Local, LocalMethod, Step, every
from suite.methods.registry import register


class LocalSGDASettings(MethodSettings):
    """Settings of local SGDA; `optimizer.lr` is eta_x."""

    name: Literal["local_sgda"] = "local_sgda"
    tau: PositiveInt = Field(10, description="steps between averages; 1 is centralised SGDA")
    ascent_ratio: PositiveFloat = Field(1.0, description="eta_y / eta_x")
    snapshot_every: PositiveInt | None = Field(
        None, description="S of local SGDA+, steps between snapshots of x: a multiple of tau; null: plain local SGDA"
    )

    @model_validator(mode="after")
    def _snapshots_are_averages(self) -> "LocalSGDASettings":
        if self.snapshot_every is not None and self.snapshot_every % self.tau:
            raise ValueError(
                f"snapshot_every must be a multiple of tau, because snapshots are averages, and {self.snapshot_every} "
                f"is none of {self.tau}"
            )
        return self


@register
class LocalSGDA(LocalMethod):
    """Minimises over x and maximises over y; without y it is local SGD."""

    Settings = LocalSGDASettings
    label = "Local SGDA"

    def init(self, parameters) -> Local:
        return {"snapshot": parameters.clone()} if self.settings.snapshot_every else {}

    def second_point(self, local: Local):
        if not (self.settings.snapshot_every and self.ascending):
            return None
        point = local["snapshot"].clone()
        for part in self.ascending:
            point[part] = local["parameters"][part]
        return point

    def direction(self, gradient, local: Local, step: Step):
        if self.settings.ascent_ratio != 1.0:
            for part in self.ascending:
                gradient[part] *= self.settings.ascent_ratio
        return gradient

    def group(self, step: int, workers: int) -> int | None:
        return every(self.settings.tau, step, workers)

    def after_average(self, local: Local, seen, step: int) -> None:
        if self.settings.snapshot_every and step % self.settings.snapshot_every == 0:
            local["snapshot"].copy_(local["parameters"])

    def averages(self, workers: int) -> list[Averaging]:
        return [Averaging(workers, 1, 1 / self.settings.tau)]

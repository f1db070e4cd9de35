"""Hier-AVG: local SGD steps, averages inside groups now and then, over all workers less often (arXiv 1903.05133).

A worker sends 4d [2(S-1)/S (1/K1 - 1/K2) + 2(P-1)/P 1/K2] bytes an iteration. K-AVG is S = 1 or K1 = K2.
The paper leaves momentum open; here every worker has its own, which is not averaged unless asked for (our choice).
"""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from suite.methods.base import MethodSettings
from suite.methods.local import Averaging, LocalMethod, refuse_groups
from suite.methods.registry import register


class HierAvgSettings(MethodSettings):
    """Settings of Hier-AVG."""

    name: Literal["hier_avg"] = "hier_avg"
    k1: PositiveInt = Field(4, description="K1, steps between averages inside a group")
    k2: PositiveInt = Field(8, description="K2, steps between averages over all workers: a multiple of K1")
    group: PositiveInt = Field(4, description="S, consecutive workers in a group; divides world.workers")
    average_momentum: bool = Field(False, description="average momentum with the parameters")

    @model_validator(mode="after")
    def _periods(self) -> "HierAvgSettings":
        if self.k2 % self.k1:
            raise ValueError(f"k2 must be a multiple of k1, and {self.k2} is none of {self.k1}")
        return self

    @property
    def groups(self) -> tuple[int, ...]:
        return (self.group,)

    def check_workers(self, workers: int) -> None:
        refuse_groups(self.group, workers, "method.group")


@register
class HierAvg(LocalMethod):
    """K1 local steps, then an average inside each group of S workers; after K2 steps one over all of them."""

    Settings = HierAvgSettings
    label = "Hier-AVG"

    @property
    def averaged(self) -> tuple[str, ...]:
        return ("momentum",) if self.settings.average_momentum else ()

    def group(self, step: int, workers: int) -> int | None:
        settings = self.settings
        if step % settings.k2 == 0:
            return workers
        return settings.group if step % settings.k1 == 0 and settings.group > 1 else None

    def averages(self, workers: int) -> list[Averaging]:
        settings, vectors = self.settings, 1 + len(self.averaged)
        local = Averaging(settings.group, vectors, 1 / settings.k1 - 1 / settings.k2)
        return [local, Averaging(workers, vectors, 1 / settings.k2)]

"""Local SGD whose batch grows as the gradient vanishes beside its noise (arXiv 2406.13936).

When all average, a test decides about the batch of the next H steps. With g_m the workers' gradients of the first of
the last H steps, when all were at one point, and g their average over M workers:

- norm test: b <- ceil(b s2 / (eta^2 ||g||^2)), s2 = sum_m ||g_m - g||^2 / (M - 1), an estimate of the variance over b;
- inner-product test: the variance over m of <g_m, g>, over theta^2 ||g||^4, takes the place of that ratio.

The batch never shrinks. It counts in base batches of `train.batch_size`, the smallest: a worker goes on through the
same samples in the same order and takes several base batches an iteration, at the end of an epoch what is left of them.
The gradient is the mean over them; each passes through the model on its own, so BatchNorm sees base batches.

The tests on the spread between workers are derived here from the paper's condition, Var(g_m) <= eta^2 ||grad f||^2; the
paper's own estimator we could not see. A worker sends 2 * 4d * 2(P-1)/P / H bytes an iteration: parameters and g_m.
"""

import math
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from suite.methods.base import MethodSettings
from suite.methods.local import Averaging, Local, LocalMethod, Step, every
from suite.methods.registry import register


class AdaptiveBatchSettings(MethodSettings):
    """Settings of local SGD with adaptive batches."""

    name: Literal["adaptive_batch"] = "adaptive_batch"
    period: PositiveInt = Field(4, description="H, steps between averages")
    test: Literal["norm", "inner_product"] = Field("norm", description="what decides about the batch")
    eta: PositiveFloat = Field(
        0.5, description="eta, or theta of the inner-product test: smaller ones grow batches sooner"
    )
    largest: PositiveInt = Field(16, description="b_max / train.batch_size")

    def check_workers(self, workers: int) -> None:
        if workers < 2:
            raise ValueError("adaptive_batch measures noise between workers and needs two; set world.workers")


@register
class AdaptiveBatch(LocalMethod):
    """Local SGD that averages parameters and one gradient a worker, and then chooses the next batch."""

    Settings = AdaptiveBatchSettings
    label = "Adaptive batch"
    averaged = ("gradient",)

    def init(self, parameters) -> Local:
        import torch

        return {"gradient": torch.zeros_like(parameters), "batches": 1, "measured": 1}

    def batches(self, local: Local) -> int:
        return local["batches"]

    def direction(self, gradient, local: Local, step: Step):
        if step.since == 1:
            local["gradient"].copy_(gradient)
            local["measured"] = step.batches
        return gradient

    def group(self, step: int, workers: int) -> int | None:
        return every(self.settings.period, step, workers)

    def observe(self, local: Local, means: Local) -> list[float]:
        own, mean = local["gradient"].double(), means["gradient"].double()
        square = float(mean @ mean)
        if self.settings.test == "norm":
            return [float((own - mean).square().sum()), square]
        return [(float(own @ mean) - square) ** 2, square**2]

    def after_average(self, local: Local, seen, step: int) -> None:
        spread, size = float(seen[:, 0].sum()) / (len(seen) - 1), float(seen[0, 1])
        wanted = local["measured"] * ratio(spread, self.settings.eta**2 * size)
        local["batches"] = max(local["batches"], math.ceil(min(wanted, self.settings.largest)))

    def averages(self, workers: int) -> list[Averaging]:
        return [Averaging(workers, 2, 1 / self.settings.period)]


def ratio(noise: float, signal: float) -> float:
    """noise / signal; infinite without signal, 0 without noise."""
    if noise == 0:
        return 0.0
    return noise / signal if signal > 0 else math.inf

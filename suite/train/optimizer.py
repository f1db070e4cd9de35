"""The step every worker takes alike, on the averaged update: clip once, then SGD with momentum."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from suite.config.optimizer import IterateAverageConfig, OptimizerConfig


class IterateAverage:
    """The average of iterates w_0, w_1, ... with weights (a + t)^2, kept while they come.

    Attributes:
        vector: float64 [d], because late iterates hardly move it.
    """

    def __init__(self, config: IterateAverageConfig, like: torch.Tensor):
        self.config, self.vector, self.count = config, torch.zeros_like(like, dtype=torch.float64), 0

    def include(self, iterate: torch.Tensor) -> None:
        """The next iterate [d]."""
        a, t = self.config.shift, self.count
        self.count += 1
        # The sum of all weights up to this one, in closed form.
        total = (t + 1) * (6 * a * a + 6 * a * t + t * (2 * t + 1)) / 6
        # Only a first weight of 0 makes the sum 0.
        self.vector.add_(iterate - self.vector, alpha=(a + t) ** 2 / total if total else 1.0)


class FlatSGD:
    """m <- mu m + (u + lam w), w <- w - lr m: momentum and weight decay after aggregation, as torch.optim.SGD does it.

    Three vector operations of our own because the first step of a torch.optim optimiser imports torch's compiler,
    which takes longer than a short run's training; a test holds the two to the same bits.

    Under `lr_placement: inside` the update already carries the learning rate, so the step is 1, and weight decay and
    clipping norm are scaled by the rate instead; with a constant rate both placements give the same iterates up to
    rounding.
    """

    def __init__(
        self, parameters: torch.Tensor, config: OptimizerConfig, lr_inside: bool,
        constrain: Callable[[torch.Tensor], None] | None = None,
    ):  # fmt: skip
        """Args:
        parameters: [d], changed in place by every step.
        lr_inside: see above.
        constrain: brings parameters [d] back, in place, to where the model allows them.
        """
        self.parameters, self.config, self.lr_inside, self._constrain = parameters, config, lr_inside, constrain
        self.momentum: torch.Tensor | None = None
        self.average = None if config.average is None else IterateAverage(config.average, parameters)
        self._scratch: torch.Tensor | None = None
        self.current_lr = config.lr

    @torch.no_grad()
    def step(self, update: torch.Tensor, lr: float) -> None:
        """Move the parameters along `update` [d], which is only read."""
        config, self.current_lr = self.config, lr
        carried = lr if self.lr_inside else 1.0
        if self.average is not None:
            self.average.include(self.parameters)
        if self._scratch is None and (config.clip_norm is not None or config.weight_decay):
            self._scratch = torch.empty_like(update)
        if config.clip_norm is not None:
            update = torch.mul(update, clipping(update, carried * config.clip_norm), out=self._scratch)
        if config.weight_decay:
            update = torch.add(update, self.parameters, alpha=carried * config.weight_decay, out=self._scratch)
        if config.momentum:
            self.momentum = (
                update.clone() if self.momentum is None else self.momentum.mul_(config.momentum).add_(update)
            )
            update = self.momentum
        self.parameters.add_(update, alpha=-lr / carried)
        if self._constrain is not None:
            self._constrain(self.parameters)

    # -- as the trainer sees it ---------------------------------------------------------------------------------------

    def take(self, left: int) -> int:
        """Base batches of the coming iteration, of `left` in the epoch."""
        return 1

    def passes(self, position: int) -> Sequence[torch.Tensor | None]:
        """Points [d] at which the local worker at `position` computes the coming gradient, its own one as None."""
        return (None,)

    @contextmanager
    def tested(self) -> Iterator[None]:
        """Inside, the parameters are those that a test is of. Entered by all processes together."""
        if self.average is None:
            yield
            return
        last = self.parameters.clone()
        self.parameters.copy_(self.average.vector)
        try:
            yield
        finally:
            self.parameters.copy_(last)

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on."""
        average = self.average and {"vector": self.average.vector, "count": self.average.count}
        return {"momentum": self.momentum, "average": average}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict`'s values."""
        self.momentum = state["momentum"]
        if self.average is not None:
            self.average.vector, self.average.count = state["average"]["vector"], state["average"]["count"]


def clipping(vector: torch.Tensor, norm: float) -> torch.Tensor:
    """The factor, of no dimensions, that brings a vector down to a 2-norm; as torch.nn.utils.clip_grad_norm_ has it."""
    return torch.clamp(norm / (torch.linalg.vector_norm(vector) + 1e-6), max=1.0)

"""The step every worker takes alike, on the averaged update: clip once, then SGD with momentum."""

import torch

from suite.config.experiment import OptimizerConfig


class FlatSGD:
    """m <- mu m + (u + lam w), w <- w - lr m: momentum and weight decay after aggregation, as torch.optim.SGD does it.

    Three vector operations of our own because the first step of a torch.optim optimiser imports torch's compiler,
    which takes longer than a short run's training; a test holds the two to the same bits.

    Under `lr_placement: inside` the update already carries the learning rate, so the step is 1, and weight decay and
    clipping norm are scaled by the rate instead; with a constant rate both placements give the same iterates up to
    rounding.
    """

    def __init__(self, parameters: torch.Tensor, config: OptimizerConfig, lr_inside: bool):
        self.parameters, self.config, self.lr_inside = parameters, config, lr_inside
        self.momentum: torch.Tensor | None = None
        self._scratch: torch.Tensor | None = None
        self.current_lr = config.lr

    @torch.no_grad()
    def step(self, update: torch.Tensor, lr: float) -> None:
        """Move the parameters along `update` [d], which is only read."""
        config, self.current_lr = self.config, lr
        carried = lr if self.lr_inside else 1.0
        if self._scratch is None and (config.clip_norm is not None or config.weight_decay):
            self._scratch = torch.empty_like(update)
        if config.clip_norm is not None:
            norm = torch.linalg.vector_norm(update)
            factor = torch.clamp(carried * config.clip_norm / (norm + 1e-6), max=1.0)
            update = torch.mul(update, factor, out=self._scratch)
        if config.weight_decay:
            update = torch.add(update, self.parameters, alpha=carried * config.weight_decay, out=self._scratch)
        if config.momentum:
            self.momentum = (
                update.clone() if self.momentum is None else self.momentum.mul_(config.momentum).add_(update)
            )
            update = self.momentum
        self.parameters.add_(update, alpha=-lr / carried)

    def state_dict(self) -> dict[str, torch.Tensor | None]:
        """What the next step depends on."""
        return {"momentum": self.momentum}

    def load_state_dict(self, state: dict[str, torch.Tensor | None]) -> None:
        """Continue from `state_dict`'s values."""
        self.momentum = state["momentum"]

"""The step every worker takes alike, on the averaged update: clip once, then torch's SGD on the flat parameters."""

import torch
from torch import nn

from suite.config.experiment import OptimizerConfig


class FlatSGD:
    """Momentum and weight decay after aggregation.

    Under `lr_placement: inside` the update already carries the learning rate, so the step is 1, weight decay and the
    clipping norm are scaled by the rate instead; with a constant rate both placements then give the same iterates up to
    rounding.
    """

    def __init__(self, parameters: torch.Tensor, config: OptimizerConfig, lr_inside: bool):
        self.config, self.lr_inside = config, lr_inside
        self.parameter = nn.Parameter(parameters, requires_grad=True)
        self.current_lr = config.lr
        self.sgd = torch.optim.SGD([self.parameter], lr=config.lr, momentum=config.momentum)

    def step(self, update: torch.Tensor, lr: float) -> None:
        """Move the parameters along `update` [d], which is clipped in place."""
        scale = lr if self.lr_inside else 1.0
        self.parameter.grad = update
        if self.config.clip_norm is not None:
            nn.utils.clip_grad_norm_([self.parameter], scale * self.config.clip_norm)
        self.current_lr = lr
        group = self.sgd.param_groups[0]
        group["lr"], group["weight_decay"] = lr / scale, scale * self.config.weight_decay
        self.sgd.step()

    def state_dict(self) -> dict:
        return self.sgd.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self.sgd.load_state_dict(state)

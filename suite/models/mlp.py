"""A small network of smooth activations: a non-convex problem whose full gradient can be computed at any time."""

import torch
from torch import nn

from suite.config.experiment import MLPConfig


class MLP(nn.Module):
    """Linear layers with tanh between them. Vectors [B, features] in, predictions [B, 1] out."""

    def __init__(self, features: int, config: MLPConfig):
        super().__init__()
        widths = (features, *config.widths)
        hidden = [nn.Sequential(nn.Linear(n, m), nn.Tanh()) for n, m in zip(widths, widths[1:], strict=False)]
        self.layers = nn.Sequential(*hidden)
        self.output = nn.Linear(widths[-1], 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.layers(x))

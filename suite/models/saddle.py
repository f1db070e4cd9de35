"""x and y of a quadratic that is minimised in the one and maximised in the other."""

import torch
from torch import nn

from suite.models.linear import negated_gradient

# A (diagonal) [n], B [n, m], C (diagonal) [m], u [n], v [m].
Coefficients = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class Saddle(nn.Module):
    """Coefficients in, the value of the quadratic out."""

    ascends = ("y",)

    def __init__(self, n: int, m: int):
        super().__init__()
        self.x, self.y = nn.Parameter(torch.ones(n)), nn.Parameter(torch.ones(m))

    def forward(self, coefficients: Coefficients) -> torch.Tensor:
        """x' A x / 2 + x' B y - y' C y / 2 + u' x - v' y, a scalar."""
        a, b, c, u, v = coefficients
        x, y = self.x, negated_gradient(self.y)
        return (a * x * x).sum() / 2 + x @ (b @ y) - (c * y * y).sum() / 2 + u @ x - v @ y

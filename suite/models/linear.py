"""Linear classifiers, which say themselves what is to be minimised: convex problems, and one with an adversary."""

import torch
from torch import nn
from torch.nn import functional as F

from suite.config.problems import LinearConfig, RobustLinearConfig


class Linear(nn.Module):
    """One vector of weights, zero at first: logistic regression or a linear support vector machine."""

    def __init__(self, features: int, config: LinearConfig):
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.zeros(features))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors [B, features] in, scores [B] out: the sign is the class."""
        return vectors @ self.weight

    def losses(self, vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Of every sample, [B], without the l2 term; labels are -1 or 1, float32 [B]."""
        margins = labels * self(vectors).float()
        return F.softplus(-margins) if self.config.loss == "logistic" else F.relu(1 - margins)

    def regularisation(self) -> torch.Tensor:
        """lambda / 2 ||w||^2."""
        return self.config.l2 / 2 * self.weight.square().sum()

    def objective(self, vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """What training minimises, over these samples."""
        return self.losses(vectors, labels).mean() + self.regularisation()


class RobustLinear(nn.Module):
    """Logistic regression against an adversary who weighs groups: min over w, max over q on the simplex.

    sum_g q_g L_g(w) - mu / 2 ||q - 1 / G||^2 + lambda / 2 ||w||^2, with L_g the mean loss of group g.
    """

    ascends = ("group_weights",)

    def __init__(self, features: int, groups: int, config: RobustLinearConfig):
        super().__init__()
        self.config, self.groups = config, groups
        self.weight = nn.Parameter(torch.zeros(features))
        self.group_weights = nn.Parameter(torch.full((groups,), 1 / groups))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors [B, features] in, scores [B] out."""
        return vectors @ self.weight

    def losses(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Of every sample, [B]; targets [B, 2] are labels, -1 or 1, and groups."""
        return F.softplus(-targets[:, 0] * self(vectors).float())

    def objective(self, vectors: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """What w minimises and q maximises, estimated from these samples of equally large groups."""
        q = negated_gradient(self.group_weights)
        adversary = (self.groups * q[targets[:, 1].long()] * self.losses(vectors, targets)).mean()
        return adversary - self.config.smoothing / 2 * (q - 1 / self.groups).square().sum() + self.regularisation()

    def regularisation(self) -> torch.Tensor:
        """lambda / 2 ||w||^2."""
        return self.config.l2 / 2 * self.weight.square().sum()

    def worst(self, losses: torch.Tensor) -> torch.Tensor:
        """The largest value the adversary can reach for group losses [G]: the function of w that is minimised."""
        mu, even = self.config.smoothing, 1 / self.groups
        if not mu:
            return losses.max() + self.regularisation()
        q = onto_simplex(even + losses / mu)
        return q @ losses - mu / 2 * (q - even).square().sum() + self.regularisation()

    @torch.no_grad()
    def constrain(self, parameters: dict[str, torch.Tensor]) -> None:
        """Bring group weights back to the simplex, in place."""
        weights = parameters["group_weights"]
        weights.copy_(onto_simplex(weights))


def negated_gradient(parameter: torch.Tensor) -> torch.Tensor:
    """The same values, through which a gradient passes with its sign turned: what descends on it ascends."""
    return 2 * parameter.detach() - parameter


def onto_simplex(vector: torch.Tensor) -> torch.Tensor:
    """The nearest point of {q >= 0, sum q = 1} to a vector [n]: shifted down, cut off at 0."""
    falling = vector.sort(descending=True).values
    counts = torch.arange(1, vector.numel() + 1, device=vector.device)
    shifts = (falling.cumsum(0) - 1) / counts
    # As many of the largest stay above 0 as are above the shift they would need.
    return (vector - shifts[int((falling > shifts).sum()) - 1]).clamp(min=0)

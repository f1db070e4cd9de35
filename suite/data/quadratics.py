"""A quadratic function of two vectors for every worker, and the saddle of their mean."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from suite.config.problems import QuadraticsConfig
from suite.data.dataset import hash_of

# A (diagonal) [n], B [n, m], C (diagonal) [m], u [n], v [m]; see QuadraticsConfig.
Functions = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Quadratics:
    """Functions by worker; an epoch is as many iterations as the settings say, each on the same functions."""

    config: QuadraticsConfig
    device: torch.device = torch.device("cpu")
    unit: str = "iterations"

    @property
    def channels(self) -> int:
        """Entries of x."""
        return self.config.x

    @property
    def classes(self) -> int:
        """Entries of y."""
        return self.config.y

    @property
    def train_size(self) -> int:
        return self.config.iterations

    @cached_property
    def sha256(self) -> str:
        """Of the first worker's function: the others' follow from the same settings."""
        return hash_of(*(torch.from_numpy(values) for values in self.function(0)))

    def iterations(self, workers: int, batch: int) -> int:
        return self.config.iterations

    def dropped(self, workers: int, batch: int) -> int:
        return 0

    def to(self, device: torch.device) -> "Quadratics":
        return Quadratics(self.config, device)

    def function(self, worker: int) -> Functions:
        """A worker's coefficients, float64: (A, B, C, u, v)."""
        config = self.config
        common = self._draw([config.split_seed])
        own = self._draw([config.split_seed, 1 + worker])
        h, size = config.heterogeneity, config.coupling / max(config.x, config.y) ** 0.5
        a, c = (config.convexity * np.exp(h * own[i]) for i in (0, 2))
        b, u, v = (common[i] + h * own[i] for i in (1, 3, 4))
        return a, size * b, c, u, v

    def _draw(self, seed: list[int]) -> Functions:
        rng, n, m = np.random.default_rng(seed), self.config.x, self.config.y
        return tuple(rng.standard_normal(shape) for shape in ((n,), (n, m), (m,), (n,), (m,)))

    def coefficients(self, worker: int) -> tuple[torch.Tensor, ...]:
        """The same, as float32 tensors on the device."""
        return tuple(torch.from_numpy(values).float().to(self.device) for values in self.function(worker))

    def mean(self, workers: int) -> Functions:
        """Coefficients of the mean over P workers, float64."""
        return tuple(np.mean(values, axis=0) for values in zip(*map(self.function, range(workers)), strict=True))

    def saddle(self, workers: int) -> np.ndarray:
        """Where the mean over P workers has its saddle: x and y, float64 [n + m]."""
        a, b, c, u, v = self.mean(workers)
        return np.linalg.solve(np.block([[np.diag(a), b], [b.T, -np.diag(c)]]), np.concatenate([-u, v]))


def load_quadratics(config: QuadraticsConfig) -> Quadratics:
    """Nothing is read: the functions are drawn."""
    return Quadratics(config)

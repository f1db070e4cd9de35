"""What a local-update method has to say: how a worker steps on its own gradient, when who averages, and what.

Between averages every worker has parameters of its own. The trainer steps all workers, averages, and keeps the rest
(data order, skipping of non-finite gradients, checkpoints, tests on the average of all workers) as for other methods.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from suite.config.costs import LinearCost, NetworkCosts
from suite.errors import ConfigError
from suite.methods.base import Method
from suite.plan import Layout, Plan, whole_gradient

if TYPE_CHECKING:
    from torch import Tensor

    from suite.compress import Compressor

# What a worker steps with, by name: "parameters", "momentum" where the optimiser has it, and the method's own.
Local = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A step that the workers take alike, each on its own gradient.

    Attributes:
        since: s = 1, 2, ...: steps since all workers averaged, this one counted.
        batches: base batches (`train.batch_size`) that each worker's gradient is the mean over.
    """

    since: int
    batches: int = 1


@dataclass(frozen=True)
class Averaging:
    """One kind of average a method takes.

    Attributes:
        workers: S, in each of the groups that average among themselves.
        vectors: of d floats that are averaged.
        share: of the iterations that do so.
    """

    workers: int
    vectors: int
    share: float

    @property
    def ring(self) -> float:
        """What a worker of a ring all-reduce sends in an iteration, on average, over d floats."""
        return self.share * self.vectors * 2 * (self.workers - 1) / self.workers


class LocalMethod(Method):
    """A method whose workers take local steps and average their parameters.

    Attributes:
        averaged: names of what is averaged beside the parameters.
        ascending: where the entries lie that the model marks as maximising; `adopt` sets it.
    """

    averaged: ClassVar[tuple[str, ...]] = ()

    def adopt(self, layout: Layout, ascends: Sequence[str]) -> None:
        """Take note of which parameters the model maximises over, by name."""
        names = set(ascends)
        bounds = zip(layout.names, layout.offsets, layout.sizes, strict=True)
        self.ascending = tuple(slice(start, start + size) for name, start, size in bounds if name in names)

    def init(self, parameters: Tensor) -> Local:
        """What a worker with these parameters [d] begins with beside them: vectors [d] and plain values."""
        return {}

    def batches(self, local: Local) -> int:
        """Base batches a worker takes in an iteration, the same on all workers."""
        return 1

    def second_point(self, local: Local) -> Tensor | None:
        """Parameters [d] at which the ascending entries of the gradient are taken; None: where the worker is."""
        return None

    def direction(self, gradient: Tensor, local: Local, step: Step) -> Tensor:
        """What a worker steps along: -lr times it, with the optimiser's momentum and weight decay.

        Args:
            gradient: the worker's own, [d]; may be changed and returned. Of maximising parameters it is negated, so
                that all parameters step against it.
            local: the worker's; its vectors may be changed in place.
            step: which one.
        """
        return gradient

    @abstractmethod
    def group(self, step: int, workers: int) -> int | None:
        """How many consecutive workers average after a step, counted from 1 over the run; P for all, None for nobody.

        A step that was skipped because of a non-finite gradient does not count.
        """

    def observe(self, local: Local, means: Local) -> list[float]:
        """A few numbers a worker tells all others when all average, from what it had and the averages, by name."""
        return []

    def after_average(self, local: Local, seen: Tensor | None, step: int) -> None:
        """All workers have averaged after `step`; `seen`, float64 [P, n], is what all have told by `observe`."""

    @abstractmethod
    def averages(self, workers: int) -> Sequence[Averaging]:
        """The averages among P workers, as bytes and predictions count them."""

    # -- as other methods ---------------------------------------------------------------------------------------------

    def plan(self, layout: Layout, epoch: int) -> Plan:
        """What a worker hands in to average its parameters once."""
        return whole_gradient(layout, None)

    def collective(self, network: NetworkCosts, sparse: bool) -> LinearCost:
        """The mean over iterations of what averaging costs: it cannot hide, because a step needs the whole gradient."""
        line, found = network.link, self.averages(network.workers)
        start = sum(2 * (a.workers - 1) * a.vectors * a.share for a in found) * line.start
        return LinearCost(start=start, per_byte=self.traffic(network.workers, sparse) * line.per_byte)

    def traffic(self, workers: int, sparse: bool) -> float:
        """The mean over iterations, as `collective`."""
        return sum(averaging.ring for averaging in self.averages(workers))

    def collective_name(self, sparse: bool) -> str:
        return "ring all-reduce of parameters, not in every iteration"

    def compressor(self) -> Compressor:
        name = self.settings.name
        raise ConfigError(f"{name} averages parameters and exchanges no gradients; that works in `suite train` only")


def every(period: int, step: int, workers: int) -> int | None:
    """All workers after each `period` steps: the usual `group`."""
    return workers if step % period == 0 else None


def refuse_groups(size: int, workers: int, setting: str) -> None:
    """ValueError unless groups of `size` divide P."""
    if workers % size:
        fits = [n for n in range(1, workers + 1) if workers % n == 0]
        raise ValueError(f"{setting} must divide the {workers} workers; possible are {', '.join(map(str, fits))}")

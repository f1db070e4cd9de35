"""Low-rank compression with error feedback: a matrix M, n x m, is sent as factors P, n x r, and Q, m x r, of P Q^T.

`PowerSGD` (Vogels et al. 2019) sends both in every iteration, one after the other; `AlternatingLowRank` (ACP-SGD,
arXiv 2306.08881) one of them, in turn. Tensors of one dimension travel whole, in the same messages. A state holds the
run's seed and, by the segment's name, the factors that the next iteration begins with. All of it works in the
gradient's dtype.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
import torch

from suite.compress.accumulation import Accumulation
from suite.compress.payload import State, Summable
from suite.plan import Layout, Message, Segment


def orthonormal(factor: torch.Tensor) -> torch.Tensor:
    """Orthonormal columns, as many as there are, whose span holds that of the factor's; by QR."""
    return torch.linalg.qr(factor).Q


def first_factor(size: int, rank: int, seed: int, start: int, like: torch.Tensor) -> torch.Tensor:
    """A random factor [size, rank] to begin with: a function of the run's seed and the segment's place alone."""
    generator = torch.Generator().manual_seed(int(np.random.SeedSequence([seed, start]).generate_state(1)[0]))
    return torch.randn(size, rank, generator=generator, dtype=like.dtype).to(like.device)


def views(flat: torch.Tensor, shapes: list[tuple[int, ...]]) -> list[torch.Tensor]:
    """Consecutive parts of a vector in these shapes, without copying."""
    parts = flat.split([prod(shape) for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


class LowRank:
    """What the two have in common.

    Args:
        rank: r; less for a matrix with fewer rows or columns.
    """

    common: ClassVar[bool] = True  # all workers begin with the same factors and keep their averages

    def __init__(self, rank: int):
        self.rank = rank

    def init(self, layout: Layout, seed: int) -> State:
        return {"seed": seed, "factors": {}}  # which follow when devices and dtypes are known

    def rank_of(self, segment: Segment) -> int:
        """Columns of the segment's factors."""
        return min(self.rank, *segment.matrix)


def parts(message: Message, flat: torch.Tensor) -> Iterator[tuple[Segment, torch.Tensor]]:
    """The message's segments with their parts of its vector, matrices in their shape."""
    for segment in message.segments:
        first = segment.start - message.start
        part = flat[first : first + segment.size]
        yield segment, part.view(segment.matrix) if segment.matrix else part


# -- Power-SGD --------------------------------------------------------------------------------------------------------


class PowerSGD(LowRank):
    """One step of subspace iteration an iteration, begun with the Q of the one before; two dependent all-reduces."""

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple["LeftFactors | Vectors", State]:
        acc, rights, values = accumulation.form(message.start, message.stop), {}, []
        if not any(segment.matrix for segment in message.segments):
            return Vectors(acc.clone()), state
        for segment, part in parts(message, acc):
            if segment.matrix is None:
                values.append(part)
                continue
            right = state["factors"].get(segment.name)
            if right is None:
                right = first_factor(segment.matrix[1], self.rank_of(segment), state["seed"], segment.start, acc)
            rights[segment.name] = right
            values.append((part @ right).flatten())
        return LeftFactors(torch.cat(values), message, acc, rights), state


@dataclass(frozen=True)
class Vectors(Summable):
    """A message without matrices."""

    def settle(self, found: torch.Tensor, left: torch.Tensor, state: State, worker: int) -> State:
        left.zero_()
        return state


@dataclass(frozen=True)
class LeftFactors(Summable):
    """First round: P = M Q of every matrix, and the tensors of one dimension.

    Attributes:
        message: that they are of.
        acc: the message's part of what this worker could send, which must not change before the second round.
        rights: Q by segment.
    """

    message: Message
    acc: torch.Tensor
    rights: dict[str, torch.Tensor]

    def read(self, arrived: torch.Tensor, workers: int) -> dict[str, torch.Tensor]:
        """Sums over workers by segment; those of matrices made orthonormal, which takes their scale away."""
        shapes = []
        for segment in self.message.segments:
            columns = self.rights[segment.name].shape[1] if segment.matrix else 0
            shapes.append((segment.matrix[0], columns) if segment.matrix else (segment.size,))
        sums = zip(self.message.segments, views(arrived, shapes), strict=True)
        return {s.name: orthonormal(part) if s.matrix else part / workers for s, part in sums}

    def reply(self, found: dict[str, torch.Tensor]) -> "RightFactors":
        rights = [part.T @ found[s.name] for s, part in parts(self.message, self.acc) if s.matrix]
        return RightFactors(torch.cat([right.flatten() for right in rights]), self.message, found)


@dataclass(frozen=True)
class RightFactors(Summable):
    """Second round: Q = M^T P.

    Attributes:
        message: of the first round.
        lefts: by segment what the first round gave: orthonormal P, and averages of tensors of one dimension.
    """

    message: Message
    lefts: dict[str, torch.Tensor]

    def read(self, arrived: torch.Tensor, workers: int) -> dict[str, torch.Tensor]:
        """The average Q by segment."""
        matrices = [s for s in self.message.segments if s.matrix]
        shapes = [(s.matrix[1], self.lefts[s.name].shape[1]) for s in matrices]
        return {s.name: part / workers for s, part in zip(matrices, views(arrived, shapes), strict=True)}

    def write(self, found: dict[str, torch.Tensor], share: torch.Tensor, workers: int) -> list[torch.Tensor]:
        for segment, part in parts(self.message, share):
            left = self.lefts[segment.name]
            part.copy_(left @ found[segment.name].T if segment.matrix else left)
        return []

    def settle(self, found: dict[str, torch.Tensor], left: torch.Tensor, state: State, worker: int) -> State:
        """The residual is what the average approximation misses of this worker's matrix."""
        for segment, part in parts(self.message, left):
            if segment.matrix:
                part -= self.lefts[segment.name] @ found[segment.name].T
            else:
                part.zero_()
        return state | {"factors": state["factors"] | found}


# -- ACP-SGD ----------------------------------------------------------------------------------------------------------


class AlternatingLowRank(LowRank):
    """P in one iteration and Q in the next: half of Power-SGD's bytes on average, one all-reduce an iteration.

    The factor that does not travel is the average of the iteration before, made orthonormal, so that all workers have
    the same. The residual is what the worker's own factor misses of its matrix.
    """

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple["OneFactor", State]:
        acc, bases, values = accumulation.form(message.start, message.stop), {}, []
        for segment, part in parts(message, acc):
            if segment.matrix is None:
                values.append(part.clone())
                part.zero_()
                continue
            sends_right, factor = state["factors"].get(segment.name, (False, None))
            if factor is None:
                factor = first_factor(segment.matrix[1], self.rank_of(segment), state["seed"], segment.start, acc)
            basis = orthonormal(factor)
            bases[segment.name] = (sends_right, basis)
            if sends_right:
                own = part.T @ basis
                part -= basis @ own.T
            else:
                own = part @ basis
                part -= own @ basis.T
            values.append(own.flatten())
        return OneFactor(torch.cat(values), message, bases), state


@dataclass(frozen=True)
class OneFactor(Summable):
    """P = M Q, or Q = M^T P, of every matrix, and the tensors of one dimension.

    Attributes:
        message: that they are of.
        bases: by segment whether it is Q that travels, and the orthonormal other factor.
    """

    message: Message
    bases: dict[str, tuple[bool, torch.Tensor]]

    def read(self, arrived: torch.Tensor, workers: int) -> dict[str, torch.Tensor]:
        """Averages over workers by segment."""
        shapes: list[tuple[int, ...]] = []
        for segment in self.message.segments:
            if segment.matrix is None:
                shapes.append((segment.size,))
                continue
            sends_right, basis = self.bases[segment.name]
            shapes.append((segment.matrix[sends_right], basis.shape[1]))
        sums = zip(self.message.segments, views(arrived, shapes), strict=True)
        return {segment.name: part / workers for segment, part in sums}

    def write(self, found: dict[str, torch.Tensor], share: torch.Tensor, workers: int) -> list[torch.Tensor]:
        for segment, part in parts(self.message, share):
            mean = found[segment.name]
            if segment.matrix is None:
                part.copy_(mean)
                continue
            sends_right, basis = self.bases[segment.name]
            part.copy_(basis @ mean.T if sends_right else mean @ basis.T)
        return []

    def settle(self, found: dict[str, torch.Tensor], left: torch.Tensor, state: State, worker: int) -> State:
        """The average is what the next iteration makes orthonormal; then it is the other factor's turn."""
        turned = {name: (not sends_right, found[name]) for name, (sends_right, _) in self.bases.items()}
        return state | {"factors": state["factors"] | turned}

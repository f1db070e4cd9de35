"""Unbiased sparsification (Wangni et al., arXiv 1710.09854): entry i is kept with probability p_i, as g_i / p_i.

Of all probabilities with the same sum, those with the least second moment sum_i g_i^2 / p_i are min(scale |g_i|, 1), by
Lagrange's conditions. So a scale says everything, and all entries kept by chance have the same magnitude, 1 / scale.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from suite.compress.accumulation import Accumulation
from suite.compress.compressors import Stateless
from suite.compress.payload import Gatherable, State
from suite.plan import Message

Rule = Literal["greedy", "closed_form", "uniform"]
Coding = Literal["plain", "hybrid"]
_SIGN = -(2**31)  # the sign bit of an int32, which an index leaves free


def greedy_scale(magnitudes: torch.Tensor, k: float, iterations: int) -> float:
    """The scale for which sum_i p_i comes to k.

    Starts from k / sum |g_i|. What the limit at 1 takes off is then dealt out, in proportion, to the entries below it,
    which may push more of them to the limit: after few iterations the sum is k, or all that is not zero is kept.
    """
    total = float(magnitudes.sum(dtype=torch.float64))
    scale = k / total if total > 0 else 0.0
    for _ in range(iterations):
        below = magnitudes.double() * scale < 1
        rest, missing = float(magnitudes[below].sum(dtype=torch.float64)), k - int((~below).sum())
        if rest == 0 or missing <= scale * rest:
            break
        scale = missing / rest
    return scale


def closed_form_scale(magnitudes: torch.Tensor, eps: float) -> float:
    """The scale with the fewest kept entries on average whose second moment is at most (1 + eps) ||g||^2.

    With S the smallest set of largest entries for which the next one's p is at most 1, the entries outside S get p_i =
    |g_i| T / (eps ||g||^2 + U), where T and U are their sums of magnitudes and of squares.
    """
    ordered = magnitudes.double().sort(descending=True).values
    squares = ordered.square()
    tail, tail_squares = (x.flip(0).cumsum(0).flip(0) for x in (ordered, squares))
    budget = eps * float(squares.sum())
    if budget == 0:
        return 0.0
    scales = tail / (budget + tail_squares)
    fits = (ordered * scales <= 1).nonzero()  # the smallest entry alone always does, but for what is not finite
    return float(scales[fits[0]]) if len(fits) else 0.0


def probabilities(g: torch.Tensor, scale: float) -> torch.Tensor:
    """p_i = min(scale |g_i|, 1), float64 [d]."""
    return (g.abs().double() * scale).clamp(max=1.0)


@dataclass(frozen=True)
class Drawn(Gatherable):
    """Entries whose number is random, so that buffers differ in length.

    Attributes:
        coding: plain: values, then indices, 8 bytes an entry. hybrid: a number and a magnitude, 8 bytes; 8 bytes for
            each entry sent as it is; 4 bytes, index and sign, for each of the others, which all have that magnitude.
        magnitude: of the entries kept by chance.
        certain: bool [k], of the entries kept with probability 1.
    """

    even: ClassVar[bool] = False

    coding: Coding = "plain"
    magnitude: float = 0.0
    certain: torch.Tensor | None = None

    def pack(self) -> torch.Tensor:
        values = self.values.view(torch.int32)
        if self.coding == "plain":
            return torch.cat([values, self.indices])
        chance = ~self.certain
        magnitude = torch.tensor([self.magnitude], dtype=torch.float32).view(torch.int32).to(values.device)
        return torch.cat([
            values.new_tensor([int(self.certain.sum())]), magnitude,
            values[self.certain], self.indices[self.certain],
            self.indices[chance] | (values[chance] & _SIGN),
        ])  # fmt: skip

    def unpack(self, buffer: torch.Tensor) -> Gatherable:
        if self.coding == "plain":
            values, indices = buffer.tensor_split(2)
            return Gatherable(values.view(torch.float32), indices, self.span)
        sure, magnitude, body = int(buffer[0]), buffer[1], buffer[2:]
        values, indices, code = body.split([sure, sure, body.numel() - 2 * sure])
        indices, order = torch.cat([indices, code & ~_SIGN]).sort()
        values = torch.cat([values, magnitude | (code & _SIGN)])[order]
        return Gatherable(values.view(torch.float32), indices, self.span)


class Unbiased(Stateless):
    """Keeps entries of a message's one segment by chance; the average of what is sent is the gradient.

    Args:
        rule: greedy: as many entries as the segment's k on average; closed_form: as few as `eps` allows; uniform: every
            entry with probability k / d, for comparison.
        iterations: of the greedy rule.
        eps: of the closed form.
        coding: see `Drawn`.
    """

    def __init__(self, rule: Rule, iterations: int, eps: float, coding: Coding):
        self.rule, self.iterations, self.eps, self.coding = rule, iterations, eps, coding

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Drawn, State]:
        (segment,) = message.segments
        acc = accumulation.form(message.start, message.stop)
        scale = self._scale(acc.abs(), segment.k)
        if self.rule == "uniform":
            p = torch.full_like(acc, scale, dtype=torch.float64)
        else:
            p = probabilities(acc, scale)
        # Doubles, because floats drawn by 24 bits would keep entries of tiny probabilities too often.
        draws = torch.rand(acc.numel(), generator=rng, dtype=torch.float64).to(acc.device)
        indices = (draws < p).nonzero().flatten()
        values, certain = acc[indices], p[indices] == 1
        magnitude = float(torch.tensor(1 / scale, dtype=torch.float32)) if scale else 0.0
        equal = torch.copysign(torch.full_like(values, magnitude), values)
        sent = torch.where(certain, values, values / scale if self.rule == "uniform" else equal)
        acc[indices] = values - sent  # what nobody keeps, for those who measure
        drawn = Drawn(
            sent, indices.to(torch.int32), acc.numel(), coding=self.coding, magnitude=magnitude, certain=certain
        )
        return drawn, state

    def _scale(self, magnitudes: torch.Tensor, k: int) -> float:
        if self.rule == "greedy":
            return greedy_scale(magnitudes, k, self.iterations)
        if self.rule == "closed_form":
            return closed_form_scale(magnitudes, self.eps)
        return k / magnitudes.numel()

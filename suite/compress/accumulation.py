"""What a worker could send: residual + gradient, formed when a message needs it."""

from bisect import bisect_right
from collections.abc import Iterator

import torch

from suite.compress.select import Native, accumulate, accumulate_take_topk, is_finite, native, take_topk
from suite.plan import Layout


class Accumulation:
    """One worker's acc = residual + scale * gradient over one iteration.

    Gradients arrive tensor by tensor while back-propagation goes on; each part of acc is formed once, by the message
    that carries it. The residual is only read: an iteration that is skipped leaves it as it was.

    Attributes:
        acc: float32 [d]; a part holds what was accumulated once formed, and after compression what was not sent.
        residual: float32 [d], or None without error feedback.
        gradients: by parameter: a flat tensor, or None where back-propagation gave none, which counts as zero.
        scale: the learning rate under `lr_placement: inside`, else 1.
    """

    def __init__(self, layout: Layout, acc: torch.Tensor, residual: torch.Tensor | None):
        self.acc, self.residual = acc, residual
        self.gradients: list[torch.Tensor | None] = [None] * len(layout.sizes)
        self.scale = 1.0
        self._bounds = layout.bounds
        self._acc, self._residual = native(acc), None if residual is None else native(residual)
        self._largest: list[int | torch.Tensor] = []

    def number_of(self, start: int) -> int:
        """The number of the parameter tensor that entry `start` is of."""
        return bisect_right(self._bounds, start) - 1

    def form(self, start: int, stop: int) -> torch.Tensor:
        """Accumulate entries start to stop; returns the view of them in `acc`."""
        for first, end, gradient in self._pieces(start, stop):
            part, residual = self._acc[first:end], self._kept(first, end)
            if gradient is not None:
                self._largest.append(accumulate(part, gradient, residual, self.scale))
            else:
                part[:] = 0 if residual is None else residual
        return self.acc[start:stop]

    def take_topk(self, start: int, stop: int, k: int, origin: int, indices: Native, values: Native) -> None:
        """Accumulate entries start to stop and move the k largest out of `acc`; indices count from `origin`."""
        _, end, gradient = next(self._pieces(start, stop))
        part = self._acc[start:stop]
        if end == stop and gradient is not None:
            kept = self._kept(start, stop)
            taken = accumulate_take_topk(part, gradient, kept, self.scale, k, start - origin, indices, values)
        else:
            self.form(start, stop)
            taken = take_topk(part, k, start - origin, indices, values)
        self._largest.append(taken)

    def release(self, start: int, stop: int) -> None:
        """Let go of the gradients that end in start to stop: these entries have been formed."""
        for number in range(self.number_of(start), len(self.gradients)):
            if self._bounds[number + 1] > stop:
                break
            self.gradients[number] = None

    def is_finite(self) -> bool:
        """Whether everything formed was finite. Waits for the device."""
        return all(is_finite(largest) for largest in self._largest)

    def _kept(self, start: int, stop: int) -> Native | None:
        return None if self._residual is None else self._residual[start:stop]

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Native | None]]:
        """The entries cut where one parameter tensor ends and the next begins: (start, stop, gradient)."""
        number = self.number_of(start)
        while start < stop:
            first, end, gradient = self._bounds[number], min(self._bounds[number + 1], stop), self.gradients[number]
            yield start, end, None if gradient is None else native(gradient)[start - first : end - first]
            start, number = end, number + 1

"""Exchanges of a message between workers of this process, for tests of compressors and payloads alone."""

from dataclasses import dataclass, field
from typing import Any

import torch

from suite.compress import Summable
from suite.compress.compressors import Compressor
from suite.plan import Layout, Message, Plan


@dataclass
class Formed:
    """Stands in for an accumulation that is in any dtype and complete."""

    acc: torch.Tensor

    def form(self, start: int, stop: int) -> torch.Tensor:
        return self.acc[start:stop]

    def take_topk(self, start, stop, k, origin, indices, values) -> None:
        from suite.compress.select import native, take_topk

        take_topk(native(self.acc[start:stop]), k, start - origin, indices, values)


@dataclass
class Party:
    """P workers that exchange what `accs` hold.

    Attributes:
        lefts: by worker what it did not send, after the last exchange.
        found: what the payload read of its last round, by message.
    """

    compressor: Compressor
    plan: Plan
    workers: int
    layout: Layout
    seed: int = 0
    lefts: list[torch.Tensor] = field(default_factory=list)
    found: list[Any] = field(default_factory=list)
    handed_in: float = 0.0

    def __post_init__(self):
        self.states = [self.compressor.init(self.layout, self.seed) for _ in range(self.workers)]
        self.rngs = [torch.Generator().manual_seed(1000 * self.seed + w) for w in range(self.workers)]

    def exchange(self, accs: list[torch.Tensor]) -> torch.Tensor:
        """The update [d] for these accumulated gradients [d], one a worker, which stay as they are."""
        formed = [Formed(acc.clone()) for acc in accs]
        update, self.found = torch.zeros_like(accs[0]), []
        for message in self.plan.messages:
            self._one(message, formed, update)
        self.lefts = [one.acc for one in formed]
        return update

    def _one(self, message: Message, formed: list[Formed], update: torch.Tensor) -> None:
        payloads = []
        for w, one in enumerate(formed):
            payload, self.states[w] = self.compressor.compress(one, message, self.states[w], self.rngs[w])
            payloads.append(payload)
        while True:
            if isinstance(payloads[0], Summable):
                arrived = sum(payload.values for payload in payloads)
                self.handed_in += payloads[0].values.nbytes
            else:
                arrived = [payload.pack() for payload in payloads]
                self.handed_in += sum(buffer.nbytes for buffer in arrived) / self.workers
            found = payloads[0].read(arrived, self.workers)
            replies = [payload.reply(found) for payload in payloads]
            if replies[0] is None:
                break
            payloads = replies
        part = slice(message.start, message.stop)
        payloads[0].write(found, update[part], self.workers)
        for w, (one, payload) in enumerate(zip(formed, payloads, strict=True)):
            self.states[w] = payload.settle(found, one.acc[part], self.states[w], w)
        self.payloads = payloads
        self.found.append(found)


def total(vectors: list[torch.Tensor]) -> torch.Tensor:
    """Their sum in float64."""
    return sum(vector.double() for vector in vectors)


def normals(seed: int, workers: int, size: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """A standard normal vector a worker."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, generator=generator, dtype=dtype) for _ in range(workers)]

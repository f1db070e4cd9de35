"""gTop-k: one global choice of k entries, made pairwise up a binomial tree of workers (arXiv 1901.04359).

In round i worker w, where 2^(i+1) divides w, takes the entries of worker w + 2^i if there is one, adds values of equal
indices and keeps the k of largest magnitude. So it works for any number of workers; worker 0 ends with the choice,
which goes back to all. Every process computes the whole tree alike from the gathered payloads: the same bits in every
placement, with transports that have no send and receive, at the real cost of an all-gather. Counted are the tree's
bytes: each worker but 0 sends its k entries up once and is sent the choice once, 2 (P-1)/P messages for each worker.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from suite.compress.accumulation import Accumulation
from suite.compress.compressors import Stateless, TopK
from suite.compress.payload import Gatherable, State
from suite.compress.select import select_topk
from suite.plan import Message

Repair = Literal["published", "exact", "owners"]
Entries = tuple[torch.Tensor, torch.Tensor]  # values float32 [n] and indices int32 [n], ascending


@dataclass(frozen=True)
class Dropped:
    """Partial sums that did not go on from a merge.

    Attributes:
        worker: that merged.
        below: all workers whose entries it had.
        values: float32 [n].
        indices: int32 [n].
    """

    worker: int
    below: range
    values: torch.Tensor
    indices: torch.Tensor


@dataclass(frozen=True)
class Chosen:
    """What came out of the tree.

    Attributes:
        values, indices: the global choice, summed over the workers that had a part in it.
        dropped: in the order of merges.
        sent: everybody's payload, in worker order.
    """

    values: torch.Tensor
    indices: torch.Tensor
    dropped: list[Dropped]
    sent: list[Gatherable]

    @property
    def lost(self) -> torch.Tensor:
        """Values that the published repair gives back to nobody.

        Their index has been dropped by one merge and was chosen globally through others, so that its owners take it
        for delivered.
        """
        lost = [drop.values[torch.isin(drop.indices, self.indices)] for drop in self.dropped]
        return torch.cat([self.values[:0], *lost])


def merge(a: Entries, b: Entries, k: int) -> tuple[Entries, Entries]:
    """Add up two sorted lists of entries; the k largest of the sums, lower index first among equals, and the rest."""
    values, indices = (torch.cat(parts) for parts in zip(a, b, strict=True))
    indices, place = indices.unique(return_inverse=True)
    sums = torch.zeros_like(values[: indices.numel()]).index_add_(0, place, values)
    kept, positions = select_topk(sums, min(k, sums.numel()))
    rest = torch.ones_like(indices, dtype=torch.bool)
    rest[positions.long()] = False
    return (kept, indices[positions.long()]), (sums[rest], indices[rest])


def tree(sent: list[Gatherable], k: int) -> Chosen:
    """Merge everybody's entries, in worker order, by the binomial tree."""
    held = [(payload.values, payload.indices) for payload in sent]
    dropped = []
    for worker, other in pairs(len(sent)):
        held[worker], rest = merge(held[worker], held[other], k)
        dropped.append(Dropped(worker, range(worker, 2 * other - worker), *rest))
    return Chosen(*held[0], dropped, sent)


def pairs(workers: int) -> Iterator[tuple[int, int]]:
    """Who merges whose entries, round by round."""
    stride = 1
    while stride < workers:
        yield from ((worker, worker + stride) for worker in range(0, workers - stride, 2 * stride))
        stride *= 2


@dataclass(frozen=True)
class Branch(Gatherable):
    """A worker's choice on its way up the tree.

    Attributes:
        repair: published: a worker puts back what of its own choice is not in the global one, as the authors' code
            does. exact: a worker puts back what it dropped when it merged. owners: a worker puts back what of its own
            choice was dropped, by whoever merged. The last two lose nothing. None: without residual.
    """

    repair: Repair | None = "published"

    def read(self, arrived: torch.Tensor, workers: int) -> Chosen:
        return tree(super().read(arrived, workers), self.values.numel())

    def write(self, found: Chosen, share: torch.Tensor, workers: int) -> list[torch.Tensor]:
        share[found.indices.long()] = found.values / workers
        return [found.indices]

    def settle(self, found: Chosen, left: torch.Tensor, state: State, worker: int) -> State:
        if self.repair == "published":
            back = ~torch.isin(self.indices, found.indices)
            left[self.indices[back].long()] = self.values[back]
        elif self.repair == "exact":
            for drop in found.dropped:
                if drop.worker == worker:
                    left.index_add_(0, drop.indices, drop.values)
        elif self.repair == "owners":
            own = [drop.indices for drop in found.dropped if worker in drop.below]
            back = torch.isin(self.indices, torch.cat([self.indices[:0], *own]))
            left[self.indices[back].long()] = self.values[back]
        return state

    def withheld(self, found: Chosen, workers: int) -> torch.Tensor:
        out = self.values.new_zeros(self.span)
        super().write(found.sent, out, workers)
        return out.index_add_(0, found.indices, found.values, alpha=-1 / workers)

    def notes(self, found: Chosen) -> dict[str, float]:
        """lost_share: sum of magnitudes of what the repair gives back to nobody, over that of all workers' choices."""
        if self.repair is None:
            return {}
        sent = sum(float(payload.values.double().abs().sum()) for payload in found.sent)
        lost = float(found.lost.double().abs().sum()) if self.repair == "published" else 0.0
        return {"lost_share": lost / sent} if sent else {}


class TreeTopK(Stateless):
    """Top-k of one segment, to be merged by the tree."""

    def __init__(self, repair: Repair | None):
        self.repair, self._topk = repair, TopK()

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Branch, State]:
        own, state = self._topk.compress(accumulation, message, state, rng)
        return Branch(own.values, own.indices, own.span, own.wire, self.repair), state

"""Baselines of the exchange benchmark.

A scheme takes one worker's gradient [d] and gives the average update [d]; it may overwrite the gradient.
"""

import os
from collections.abc import Callable
from itertools import pairwise

import torch

from suite.plan import Layout, entries_kept
from suite.world.transports import Pending

Collective = Callable[[torch.Tensor, str], Pending]

MERGE_ENTRIES = 8192  # default threshold of HKBU-HPML/OMGS-SGD
BUCKET_BYTES = 25 * 2**20  # bucket_cap_mb of torch's DistributedDataParallel


class PublishedScheme:
    """Layer-wise top-k as the LAGS authors' code exchanges it (HKBU-HPML/OMGS-SGD), restated.

    Gradients are copied into a buffer a message, tensors in backward order until it holds at least 8192 entries; the
    residual is added there; each tensor's k largest are found by torch.topk of the magnitudes; the next residual is a
    copy of the buffer with those cleared. Values (float32) and indices (int32) travel in two all-gathers a message,
    all started before the first is waited for. What arrives is added up worker by worker and divided by P.
    Kinder than the published code: top-k need not sort, and buffers are allocated once.
    """

    def __init__(self, all_gather: Collective, workers: int, layout: Layout, density: float):
        self.all_gather, self.workers = all_gather, workers
        parts = zip(layout.offsets, layout.sizes, strict=True)
        tensors = [(slice(start, start + size), entries_kept(size, density)) for start, size in parts]
        self.groups = merged_backwards(tensors, layout.sizes, MERGE_ENTRIES)
        self.spans = [slice(group[-1][0].start, group[0][0].stop) for group in self.groups]
        self.buffer, self.residual = torch.zeros(layout.size), torch.zeros(layout.size)

    @property
    def messages(self) -> int:
        """Collectives an exchange takes."""
        return 2 * len(self.groups)

    @property
    def entries(self) -> int:
        """Entries one worker sends."""
        return sum(k for group in self.groups for _, k in group)

    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        started = [self._start(number, gradient) for number in range(len(self.groups))]
        for span, (values, indices) in zip(self.spans, started, strict=True):
            share = self.buffer[span].zero_()
            of_workers = zip(values.wait().chunk(self.workers), indices.wait().chunk(self.workers), strict=True)
            for worker_values, worker_indices in of_workers:
                share.index_add_(0, worker_indices, worker_values)
            share.div_(self.workers)
        return self.buffer

    def _start(self, number: int, gradient: torch.Tensor) -> tuple[Pending, Pending]:
        span = self.spans[number]
        self.buffer[span] = gradient[span]
        self.buffer[span] += self.residual[span]
        chosen = []
        for part, k in self.groups[number]:
            _, indices = torch.topk(self.buffer[part].abs(), k, sorted=False)
            chosen.append(indices + (part.start - span.start))
        indices = torch.cat(chosen)
        values = self.buffer[span][indices]
        self.residual[span] = self.buffer[span]
        self.residual[span].index_fill_(0, indices, 0.0)
        return (
            self.all_gather(values, f"published.values.{number}"),
            self.all_gather(indices.to(torch.int32), f"published.indices.{number}"),
        )


class DenseScheme:
    """All-reduce in buckets of 25 MB, last tensors first, all started at once, in place: no copies at all."""

    def __init__(self, all_reduce: Collective, workers: int, layout: Layout):
        tensors = list(pairwise([*layout.offsets, layout.size]))
        buckets = merged_backwards(tensors, layout.sizes, BUCKET_BYTES // 4)
        self.buckets = [slice(bucket[-1][0], bucket[0][1]) for bucket in buckets]
        self.all_reduce, self.workers = all_reduce, workers

    @property
    def messages(self) -> int:
        """Collectives an exchange takes."""
        return len(self.buckets)

    def __call__(self, gradient: torch.Tensor) -> torch.Tensor:
        started = [self.all_reduce(gradient[part], f"dense.{number}") for number, part in enumerate(self.buckets)]
        for part, pending in zip(self.buckets, started, strict=True):
            pending.wait()
            gradient[part].div_(self.workers)
        return gradient


def merged_backwards(tensors: list, sizes: tuple[int, ...], least: int) -> list[list]:
    """Neighbours from the last tensor to the first, closed as soon as they hold `least` entries together."""
    groups: list[list] = []
    held = least
    for tensor, size in zip(reversed(tensors), reversed(sizes), strict=True):
        if held >= least:
            groups.append([])
            held = 0
        groups[-1].append(tensor)
        held += size
    return groups


def horovod_all_gather() -> Collective:
    """Horovod's all-gather with Horovod's own wait."""
    import horovod.torch as hvd

    def start(tensor: torch.Tensor, name: str) -> Pending:
        handle = hvd.allgather_async(tensor, name=name)
        return Pending(lambda: hvd.synchronize(handle))

    return start


def gloo_all_reduce(store: str, rank: int, size: int) -> Collective:
    """torch.distributed's all-reduce over Gloo and loopback, beside whatever else the ranks use."""
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    return lambda tensor, name: Pending(dist.all_reduce(tensor, async_op=True).wait)

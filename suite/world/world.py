"""The world a run lives in: which workers this process hosts, and collectives over all P workers."""

import os
from typing import Any

import torch

from suite.config.experiment import WorldConfig
from suite.world.transports import HorovodTransport, Pending, TorchTransport, Transport, VirtualTransport


class World:
    """P workers on N processes, process r hosting workers r P/N to (r + 1) P/N - 1.

    Collectives take the list of the local workers' contributions. Gathered results are in worker order in every
    placement; sums are in worker order when `deterministic`, else in the order the transport chooses.

    Attributes:
        size: P, the number of workers.
        local: indices of the workers hosted here.
        device: where this process computes.
        bytes_sent: bytes one worker has put on the wire for gradients, counted as the bytes a ring all-reduce,
            2 (P-1)/P n, or an all-gather, (P-1) n, of the buffers passed in sends in a world with P processes.
    """

    def __init__(self, config: WorldConfig, transport: Transport, device: torch.device):
        self.size = config.workers
        self.transport, self.device = transport, device
        self.rank, self.processes = transport.rank, transport.size
        self.deterministic = config.deterministic
        hosted = self.size // self.processes
        self.local = range(self.rank * hosted, (self.rank + 1) * hosted)
        self.bytes_sent = 0.0

    def all_gather(self, contributions: list[torch.Tensor], name: str) -> Pending:
        """Start gathering one [n] tensor a worker; the result is [P, n] in worker order."""
        self.bytes_sent += (self.size - 1) * contributions[0].nbytes
        return self._gather(contributions, name)

    def all_reduce(self, contributions: list[torch.Tensor], name: str) -> Pending:
        """Start summing one [n] tensor a worker; the result is [n]. The contributions may be overwritten."""
        self.bytes_sent += 2 * (self.size - 1) / self.size * contributions[0].nbytes
        return self._sum(contributions, name)

    def observe_sum(self, contributions: list[torch.Tensor], name: str) -> Pending:
        """`all_reduce` for measurement: not counted as sent."""
        return self._sum(contributions, name)

    def status(self, rows: list[list[float]]) -> Pending:
        """Start sharing a few numbers a worker (float64), [P, n] in worker order; control traffic, not counted."""
        return self._gather([torch.tensor(row, dtype=torch.float64, device=self.device) for row in rows], "status")

    def gather_workers(self, local_values: list[Any]) -> list[Any]:
        """One value a worker from everywhere, in worker order. Blocks."""
        return [value for values in self.transport.gather_objects(local_values) for value in values]

    def _gather(self, contributions: list[torch.Tensor], name: str) -> Pending:
        return self.transport.all_gather(torch.stack(contributions), name)

    def _sum(self, contributions: list[torch.Tensor], name: str) -> Pending:
        if self.deterministic and self.processes > 1:
            pending = self._gather(contributions, name)
            return Pending(lambda: _in_order(pending.wait()), pending.arrived)
        return self.transport.all_reduce(_in_order(contributions), name)


def _in_order(contributions: Any) -> torch.Tensor:
    """Sum over the first dimension, strictly one after the other: floating-point addition is not associative.

    May overwrite the first contribution.
    """
    total = contributions[0]
    for contribution in contributions[1:]:
        total += contribution
    return total


def choose_device(processes: int, local_rank: int) -> torch.device:
    """A GPU of its own for every one of this host's processes where there are enough, the CPU otherwise."""
    if torch.cuda.is_available() and torch.cuda.device_count() >= processes:
        torch.cuda.set_device(local_rank)
        return torch.device("cuda", local_rank)
    return torch.device("cpu")


def share_cores(config: WorldConfig, local_rank: int) -> None:
    """Give the processes of a local run fixed cores where there are fewer cores than threads.

    The system would let some of them run ahead of others for most of an iteration, and all of them would then wait for
    the last in every exchange. Where there are enough cores it does better than a fixed choice.
    """
    cores = sorted(os.sched_getaffinity(0))
    if "SUITE_LAUNCHER" in os.environ and config.processes * config.threads > len(cores):
        first = local_rank * config.threads
        os.sched_setaffinity(0, {cores[i % len(cores)] for i in range(first, first + config.threads)})


def adopt_world(device: torch.device) -> World:
    """The world a training script of somebody else's is in, with one worker a process.

    Raises:
        SuiteError: neither torch.distributed nor Horovod has been initialised.
    """
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        transport: Transport = TorchTransport()
        kind = "torch"
    else:
        transport, kind = HorovodTransport(), "horovod"
    workers = transport.size
    return World(WorldConfig(workers=workers, processes=workers, transport=kind), transport, device)


def open_world(config: WorldConfig) -> World:
    """Join the group this process was started for (see `suite.world.launch`) and describe it."""
    local_rank = int(os.environ.get("SUITE_LOCAL_RANK") or os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK") or 0)
    share_cores(config, local_rank)
    device = choose_device(int(os.environ.get("SUITE_LOCAL_SIZE") or config.processes), local_rank)
    if config.transport == "virtual":
        transport: Transport = VirtualTransport()
    elif config.transport == "horovod":
        transport = HorovodTransport()
    else:
        rank = int(os.environ["SUITE_RANK"])
        transport = TorchTransport.through(os.environ["SUITE_STORE"], rank, config.processes, device)
    return World(config, transport, device)

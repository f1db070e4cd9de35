"""The world a run lives in: which workers this process hosts, and collectives over all P workers."""

import os
from collections.abc import Sequence
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
        bytes_sent: bytes one worker, on average, has put on the wire for gradients, counted as the bytes a ring
            all-reduce, 2 (P-1)/P n, or an all-gather, (P-1) n, of the buffers passed in sends in a world with P
            processes, or by the factor that is told instead.
        rounds: how often workers have waited for what others sent, as those who exchange count it: messages of one
            iteration that do not depend on one another are one round.
    """

    def __init__(self, config: WorldConfig, transport: Transport, device: torch.device):
        self.size = config.workers
        self.transport, self.device = transport, device
        self.rank, self.processes = transport.rank, transport.size
        self.deterministic = config.deterministic
        hosted = self.size // self.processes
        self.local = range(self.rank * hosted, (self.rank + 1) * hosted)
        self.bytes_sent = 0.0
        self.rounds = 0
        self._blocks: dict[int, Transport | None] = {}

    def all_gather(self, contributions: list[torch.Tensor], name: str, factor: float | None = None) -> Pending:
        """Start gathering one [n] tensor a worker; the result is [P, n] in worker order.

        Args:
            contributions: of the local workers.
            name: of the message.
            factor: bytes that count as sent for each byte of a buffer, where this stands for another collective.
        """
        self.bytes_sent += (self.size - 1 if factor is None else factor) * contributions[0].nbytes
        return self._gather(contributions, name)

    def all_gather_uneven(self, contributions: list[torch.Tensor], name: str, factor: float | None = None) -> Pending:
        """Start gathering one int32 vector a worker, of any length; the result is a list of P, in worker order.

        Counted when they arrive, as only then the lengths of all are known.
        """
        hosted = len(contributions)
        head = torch.tensor([c.numel() for c in contributions], dtype=torch.int32, device=contributions[0].device)
        pending = self.transport.all_gather_uneven(torch.cat([head, *contributions]), name)

        def wait() -> list[torch.Tensor]:
            out = [part for whole in pending.wait() for part in whole[hosted:].split(whole[:hosted].tolist())]
            sent = sum(part.nbytes for part in out) / self.size
            self.bytes_sent += (self.size - 1 if factor is None else factor) * sent
            return out

        return Pending(wait, pending.arrived)

    def all_reduce(self, contributions: list[torch.Tensor], name: str, factor: float | None = None) -> Pending:
        """Start summing one [n] tensor a worker; the result is [n]. The contributions may be overwritten.

        `factor` is as in `all_gather`.
        """
        ring = 2 * (self.size - 1) / self.size
        self.bytes_sent += (ring if factor is None else factor) * contributions[0].nbytes
        return self._sum(contributions, name)

    def all_reduce_groups(self, contributions: list[torch.Tensor], group: int, name: str) -> Pending:
        """Start summing inside groups of so many consecutive workers, one [n] tensor a worker; nothing is overwritten.

        The result is a list: each local worker's sum [n], which members of a group share. Only members exchange, unless
        a group lies in processes that others share with it, or Horovod was not told of it: then all processes gather.

        Args:
            group: S, which divides P.
        """
        self.bytes_sent += 2 * (group - 1) / group * contributions[0].nbytes
        hosted = len(self.local)
        if hosted % group == 0:
            sums = [_in_order(_copied(contributions[i : i + group])) for i in range(0, hosted, group)]
            return Pending(lambda: [total for total in sums for _ in range(group)])
        among = self._peers(group // hosted) if group % hosted == 0 else None
        if among is not None:
            pending = self._sum(_copied(contributions), name, among)
            return Pending(lambda: [pending.wait()] * hosted, pending.arrived)
        gathered = self._gather(contributions, name)

        def own_groups() -> list[torch.Tensor]:
            everyone, sums = gathered.wait(), {}
            for first in sorted({worker - worker % group for worker in self.local}):
                sums[first] = _in_order(_copied(list(everyone[first : first + group])))
            return [sums[worker - worker % group] for worker in self.local]

        return Pending(own_groups, gathered.arrived)

    def observe_sum(self, contributions: list[torch.Tensor], name: str) -> Pending:
        """`all_reduce` for measurement: not counted as sent."""
        return self._sum(contributions, name)

    def status(self, rows: list[list[float]]) -> Pending:
        """Start sharing a few numbers a worker (float64), [P, n] in worker order; control traffic, not counted."""
        return self._gather([torch.tensor(row, dtype=torch.float64, device=self.device) for row in rows], "status")

    def gather_workers(self, local_values: list[Any]) -> list[Any]:
        """One value a worker from everywhere, in worker order. Blocks."""
        return [value for values in self.transport.gather_objects(local_values) for value in values]

    def _peers(self, processes: int) -> Transport | None:
        """The transport among the so many consecutive processes that this one is of; made once."""
        if processes not in self._blocks:
            whole = processes == self.processes
            self._blocks[processes] = self.transport if whole else self.transport.block(processes)
        return self._blocks[processes]

    def _gather(self, contributions: list[torch.Tensor], name: str, among: Transport | None = None) -> Pending:
        return (among or self.transport).all_gather(torch.stack(contributions), name)

    def _sum(self, contributions: list[torch.Tensor], name: str, among: Transport | None = None) -> Pending:
        if self.deterministic and self.processes > 1:
            pending = self._gather(contributions, name, among)
            return Pending(lambda: _in_order(pending.wait()), pending.arrived)
        return (among or self.transport).all_reduce(_in_order(contributions), name)


def _in_order(contributions: Any) -> torch.Tensor:
    """Sum over the first dimension, strictly one after the other: floating-point addition is not associative.

    May overwrite the first contribution.
    """
    total = contributions[0]
    for contribution in contributions[1:]:
        total += contribution
    return total


def _copied(contributions: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same, of which the first may be overwritten."""
    return [contributions[0].clone(), *contributions[1:]]


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


def open_world(config: WorldConfig, groups: Sequence[int] = ()) -> World:
    """Join the group this process was started for (see `suite.world.launch`) and describe it.

    Args:
        config: of the world.
        groups: sizes of the groups of workers that will sum among themselves.
    """
    local_rank = int(os.environ.get("SUITE_LOCAL_RANK") or os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK") or 0)
    share_cores(config, local_rank)
    device = choose_device(int(os.environ.get("SUITE_LOCAL_SIZE") or config.processes), local_rank)
    if config.transport == "virtual":
        transport: Transport = VirtualTransport()
    elif config.transport == "horovod":
        hosted = config.workers // config.processes
        blocks = {group // hosted for group in groups if group % hosted == 0} - {1, config.processes}
        transport = HorovodTransport(config.processes, sorted(blocks))
    else:
        rank = int(os.environ["SUITE_RANK"])
        transport = TorchTransport.through(os.environ["SUITE_STORE"], rank, config.processes, device)
    return World(config, transport, device)

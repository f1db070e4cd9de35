"""What carries messages between processes. All three start a collective and give back a handle to wait on."""

import pickle
import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol

import torch

_NAP_SECONDS = 50e-6


class Pending:
    """A started collective.

    Attributes:
        wait: gives its result, a tensor or a list of them; may be called once.
        arrived: tells, without waiting, whether the result is there.
    """

    def __init__(self, wait: Callable[[], Any], arrived: Callable[[], bool] = lambda: True):
        self.wait, self.arrived = wait, arrived

    def after(self, first: Callable[[], None]) -> "Pending":
        """The same collective, whose `wait` does something else first."""
        return Pending(lambda: (first(), self.wait())[1], self.arrived)


class Transport(Protocol):
    """N processes; every collective is entered by all of them in the same order."""

    rank: int
    size: int

    def all_reduce(self, tensor: torch.Tensor, name: str) -> Pending:
        """Start the element-wise sum over processes; may use `tensor` as its buffer."""
        ...

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        """Start collecting equally shaped tensors: [n, ...] from each becomes [N * n, ...] in rank order."""
        ...

    def all_gather_uneven(self, tensor: torch.Tensor, name: str) -> Pending:
        """Start collecting vectors of any lengths, none of them empty: a list of N, in rank order."""
        ...

    def gather_objects(self, value: Any) -> list[Any]:
        """Every process's value, in rank order, on every process. Blocks; not for the inner loop."""
        ...

    def block(self, size: int) -> "Transport | None":
        """A transport whose `all_reduce` and `all_gather` stay within this process's block of `size` consecutive ones.

        All processes make theirs together. None where there can be none.
        """
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


class VirtualTransport:
    """One process hosts all workers: nothing travels."""

    rank, size = 0, 1

    def all_reduce(self, tensor: torch.Tensor, name: str) -> Pending:
        return Pending(lambda: tensor)

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        return Pending(lambda: tensor)

    def all_gather_uneven(self, tensor: torch.Tensor, name: str) -> Pending:
        return Pending(lambda: [tensor])

    def gather_objects(self, value: Any) -> list[Any]:
        return [value]

    def block(self, size: int) -> "VirtualTransport":
        return self

    def close(self) -> None:
        pass


class HorovodTransport:
    """Horovod over Gloo, MPI or NCCL, as built; only its public calls are used.

    Attributes:
        nap: seconds between two looks at whether a message has arrived.
    """

    nap = _NAP_SECONDS

    def __init__(self, processes: int = 1, blocks: Sequence[int] = ()) -> None:
        """Args:
        processes: N; only `blocks` needs it.
        blocks: sizes that `block` will be asked for. Horovod could add them later, but then its background thread would
            synchronise once more in every cycle, for as long as the run lasts.
        """
        import horovod.torch as hvd

        self._blocks = {size: [hvd.ProcessSet(ranks) for ranks in _blocks(processes, size)] for size in blocks}
        hvd.init(process_sets=[each for sets in self._blocks.values() for each in sets])
        self._hvd, self._among = hvd, hvd.global_process_set
        self.rank, self.size = hvd.rank(), hvd.size()

    def all_reduce(self, tensor: torch.Tensor, name: str) -> Pending:
        handle = self._hvd.allreduce_async_(tensor, op=self._hvd.Sum, name=name, process_set=self._among)
        return self._pending(handle)

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        return self._pending(self._hvd.allgather_async(tensor, name=name, process_set=self._among))

    def all_gather_uneven(self, tensor: torch.Tensor, name: str) -> Pending:
        """Horovod announces lengths itself, to itself: a second message tells them to us."""
        lengths = self.all_gather(torch.tensor([tensor.numel()]), f"{name}.lengths")
        whole = self.all_gather(tensor, name)
        return Pending(
            lambda: list(whole.wait().split(lengths.wait().tolist())), lambda: whole.arrived() and lengths.arrived()
        )

    def _pending(self, handle: int) -> Pending:
        def wait() -> torch.Tensor:
            # Horovod's own wait keeps a core busy, which its other ranks and its own background thread may need.
            while not self._hvd.poll(handle):
                time.sleep(self.nap)
            return self._hvd.synchronize(handle)

        return Pending(wait, lambda: self._hvd.poll(handle))

    def gather_objects(self, value: Any) -> list[Any]:
        # Its own allgather_object spins: ranks that are early would keep the cores from those that still start.
        data = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8)
        return [pickle.loads(part.numpy().tobytes()) for part in self.all_gather_uneven(data, "objects").wait()]

    def block(self, size: int) -> "HorovodTransport | None":
        if size not in self._blocks:
            return None
        among = copy(self)
        among._among, among.rank, among.size = self._blocks[size][self.rank // size], self.rank % size, size
        return among

    def close(self) -> None:
        self._hvd.shutdown()


class TorchTransport:
    """torch.distributed: NCCL where every process has a GPU of its own, Gloo elsewhere."""

    def __init__(self) -> None:
        """Join the process group that is already there."""
        import torch.distributed as dist

        self._dist = dist
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        # Of the blocks this process is of, by size; its transports share it. None stands for the group of all, which is
        # never held: a script of somebody else's may have made it, and ends it.
        self._groups: dict[int, Any] = {}

    @classmethod
    def through(cls, store: str, rank: int, size: int, device: torch.device) -> "TorchTransport":
        """Make the process group, whose members find each other through `store`: file://PATH or tcp://ADDRESS:PORT."""
        import torch.distributed as dist

        kind, _, where = store.partition("://")
        if kind == "file":
            shared: dist.Store = dist.FileStore(where, size)
        else:
            address, _, port = where.rpartition(":")
            shared = dist.TCPStore(address, int(port), is_master=False)
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=shared, rank=rank, world_size=size)
        return cls()

    def all_reduce(self, tensor: torch.Tensor, name: str) -> Pending:
        return self._pending(self._dist.all_reduce(tensor, group=self._groups.get(self.size), async_op=True), tensor)

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        out = tensor.new_empty((self.size * tensor.shape[0], *tensor.shape[1:]))
        work = self._dist.all_gather_single(out, tensor.contiguous(), group=self._groups.get(self.size), async_op=True)
        return self._pending(work, out)

    def all_gather_uneven(self, tensor: torch.Tensor, name: str) -> Pending:
        """torch.distributed gathers equal lengths only: the vectors start, padded, once the longest is known.

        They start when they are waited for, because all processes have to start collectives in the same order; so
        `arrived` tells of the lengths alone, and a traced iteration has the vectors' way in its waiting.
        """
        lengths = self.all_gather(torch.tensor([tensor.numel()], device=tensor.device), f"{name}.lengths")

        def wait() -> list[torch.Tensor]:
            counts = lengths.wait().tolist()
            padded = tensor.new_zeros(max(counts))
            padded[: tensor.numel()] = tensor
            rows = self.all_gather(padded, name).wait().view(self.size, -1)
            return [row[:count] for row, count in zip(rows, counts, strict=True)]

        return Pending(wait, lengths.arrived)

    @staticmethod
    def _pending(work: Any, result: torch.Tensor) -> Pending:
        def wait() -> torch.Tensor:
            work.wait()
            return result

        return Pending(wait, work.is_completed)

    def gather_objects(self, value: Any) -> list[Any]:
        out: list[Any] = [None] * self.size
        self._dist.all_gather_object(out, value)
        return out

    def block(self, size: int) -> "TorchTransport":
        groups = [self._dist.new_group(ranks) for ranks in _blocks(self.size, size)]
        self._groups[size] = groups[self.rank // size]
        among = copy(self)
        among.rank, among.size = self.rank % size, size
        return among

    def close(self) -> None:
        """Leave the group, and end its threads: one that outlives the interpreter aborts the process now and then.

        Gloo's threads end with the last reference to their group, not when the group is destroyed.
        """
        self._groups.clear()
        self._dist.destroy_process_group()


def _blocks(processes: int, size: int) -> list[list[int]]:
    """All ranks, in blocks of `size`."""
    return [list(range(first, first + size)) for first in range(0, processes, size)]

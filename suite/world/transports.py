"""What carries messages between processes. All three start a collective and give back a handle to wait on."""

import pickle
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

_NAP_SECONDS = 50e-6


class Pending:
    """A started collective.

    Attributes:
        wait: gives its result; may be called once.
        arrived: tells, without waiting, whether the result is there.
    """

    def __init__(self, wait: Callable[[], torch.Tensor], arrived: Callable[[], bool] = lambda: True):
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

    def gather_objects(self, value: Any) -> list[Any]:
        """Every process's value, in rank order, on every process. Blocks; not for the inner loop."""
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

    def gather_objects(self, value: Any) -> list[Any]:
        return [value]

    def close(self) -> None:
        pass


class HorovodTransport:
    """Horovod over Gloo, MPI or NCCL, as built; only its public calls are used.

    Attributes:
        nap: seconds between two looks at whether a message has arrived.
    """

    nap = _NAP_SECONDS

    def __init__(self) -> None:
        import horovod.torch as hvd

        hvd.init()
        self._hvd = hvd
        self.rank, self.size = hvd.rank(), hvd.size()

    def all_reduce(self, tensor: torch.Tensor, name: str) -> Pending:
        return self._pending(self._hvd.allreduce_async_(tensor, op=self._hvd.Sum, name=name))

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        return self._pending(self._hvd.allgather_async(tensor, name=name))

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
        sizes = self.all_gather(torch.tensor([data.numel()]), "objects.sizes")
        whole = self.all_gather(data, "objects").wait()
        return [pickle.loads(part.numpy().tobytes()) for part in whole.split(sizes.wait().tolist())]

    def close(self) -> None:
        self._hvd.shutdown()


class TorchTransport:
    """torch.distributed: NCCL where every process has a GPU of its own, Gloo elsewhere."""

    def __init__(self) -> None:
        """Join the process group that is already there."""
        import torch.distributed as dist

        self._dist, self.rank, self.size = dist, dist.get_rank(), dist.get_world_size()

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
        return self._pending(self._dist.all_reduce(tensor, async_op=True), tensor)

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        out = tensor.new_empty((self.size * tensor.shape[0], *tensor.shape[1:]))
        return self._pending(self._dist.all_gather_into_tensor(out, tensor.contiguous(), async_op=True), out)

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

    def close(self) -> None:
        self._dist.destroy_process_group()

"""The two kinds of payload: what may be summed on the way, and what may only be gathered.

They are different types so that an index list can never end up in an all-reduce.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Summable:
    """Values that mean the same on every worker; exchanged by all-reduce.

    Attributes:
        values: float32 [n].
    """

    values: torch.Tensor


@dataclass(frozen=True)
class Gatherable:
    """A worker's own choice of entries; exchanged by all-gather and added up after arrival.

    Attributes:
        values: float32 [k].
        indices: int32 [k], positions in the flattened gradient, unique.
    """

    values: torch.Tensor
    indices: torch.Tensor

    def pack(self) -> torch.Tensor:
        """One int32 buffer [2k]: the indices, then the bits of the values. 8 bytes an entry."""
        return torch.cat([self.indices, self.values.view(torch.int32)])

    @staticmethod
    def unpack(buffer: torch.Tensor) -> "Gatherable":
        """The payload whose `pack` gave this buffer."""
        k = buffer.numel() // 2
        return Gatherable(buffer[k:].view(torch.float32), buffer[:k])

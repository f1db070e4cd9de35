"""The two kinds of payload: what may be summed on the way, and what may only be gathered.

They are different types so that an index list can never end up in an all-reduce.
"""

from dataclasses import dataclass

import torch

from suite.compress.wire import WireFormat


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
        indices: int32 [k], positions in the message, unique and ascending.
        span: entries of the message.
        wire: how the two travel.
    """

    values: torch.Tensor
    indices: torch.Tensor
    span: int
    wire: WireFormat = WireFormat()

    def pack(self) -> torch.Tensor:
        """One int32 buffer, of the same size on every worker."""
        return self.wire.pack(self.values, self.indices, self.span)

    def unpack(self, buffer: torch.Tensor) -> "Gatherable":
        """Another worker's payload for the same message, from the buffer its `pack` gave."""
        values, indices = self.wire.unpack(buffer, self.values.numel(), self.span)
        return Gatherable(values, indices, self.span, self.wire)

"""What a worker hands to the exchange of a message, and what becomes of what arrives.

Payloads are of two kinds: what may be summed on the way, and what may only be gathered. They are different types so
that an index list can never end up in an all-reduce. How an arrival becomes the update is a payload's own business: a
new system of exchange is a new subclass, not a case in the exchange.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from suite.compress.wire import WireFormat

State = dict[str, Any]


class Payload:
    """One worker's share of a round of a message's exchange.

    When the round has arrived, the exchange calls `read` on the payload of the process's first worker and, with what
    it gives, `reply` on those of all local workers. If they reply, their replies travel and arrive in the same way;
    otherwise `write` of the first worker's and `settle` of everybody's end the message.
    """

    def read(self, arrived: Any, workers: int) -> Any:
        """What arrived, made ready for the other calls.

        Args:
            arrived: the sum, or an int32 buffer a worker, in worker order; may be changed.
            workers: P.
        """
        return arrived

    def reply(self, found: Any) -> "Payload | None":
        """This worker's payload for another round; None, on all workers alike, after the last."""
        return None

    def write(self, found: Any, share: torch.Tensor, workers: int) -> list[torch.Tensor]:
        """Put the average over workers into `share`, the message's part of the update.

        Returns:
            Indices of what was written, where the rest was left as it was, at zero; none where all was written.
        """
        raise NotImplementedError

    def settle(self, found: Any, left: torch.Tensor, state: State, worker: int) -> State:
        """Learn, in worker number `worker`, what became of this message.

        Args:
            found: of `read`.
            left: the message's part of what this worker did not send: what was not delivered may be put back.
            state: of the worker's compressor; not to be changed in place.

        Returns:
            The compressor's new state; as `left`, it is only kept when the iteration counts.
        """
        return state

    def withheld(self, found: Any, workers: int) -> torch.Tensor | None:
        """float32 [span]: the average of what workers sent less what `write` made of it; None where that is nothing."""
        return None

    def notes(self, found: Any) -> dict[str, float]:
        """Quantities of this message that only its arrival shows, by name, for observations.parquet."""
        return {}


@dataclass(frozen=True)
class Summable(Payload):
    """Values that mean the same on every worker; exchanged by all-reduce.

    Attributes:
        values: float32 [n].
    """

    values: torch.Tensor

    def write(self, found: torch.Tensor, share: torch.Tensor, workers: int) -> list[torch.Tensor]:
        torch.div(found, workers, out=share)
        return []


@dataclass(frozen=True)
class Gatherable(Payload):
    """A worker's own choice of entries; exchanged by all-gather and added up after arrival.

    Class attributes:
        even: whether every worker's buffer has the same size.

    Attributes:
        values: float32 [k].
        indices: int32 [k], positions in the message, unique and ascending.
        span: entries of the message.
        wire: how the two travel.
    """

    even: ClassVar[bool] = True

    values: torch.Tensor
    indices: torch.Tensor
    span: int
    wire: WireFormat = WireFormat()

    def pack(self) -> torch.Tensor:
        """One int32 buffer."""
        return self.wire.pack(self.values, self.indices, self.span)

    def unpack(self, buffer: torch.Tensor) -> "Gatherable":
        """Another worker's payload for the same message, from the buffer its `pack` gave."""
        values, indices = self.wire.unpack(buffer, self.values.numel(), self.span)
        return Gatherable(values, indices, self.span, self.wire)

    def read(self, arrived: Any, workers: int) -> list["Gatherable"]:
        """Everybody's payload, in worker order."""
        return [self.unpack(buffer) for buffer in arrived]

    def write(self, found: list["Gatherable"], share: torch.Tensor, workers: int) -> list[torch.Tensor]:
        """Added one worker after the other, so that the bits are the same in every placement; each is divided by P on
        the way."""
        for payload in found:
            share.index_add_(0, payload.indices, payload.values, alpha=1 / workers)
        return [payload.indices for payload in found]

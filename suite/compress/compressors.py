"""Compressors: from a worker's accumulated gradient and a message of the plan to a payload."""

from typing import Any, Protocol

import torch

from suite.compress.accumulation import Accumulation
from suite.compress.payload import Gatherable, Summable
from suite.compress.select import native, new_selection
from suite.compress.wire import WireFormat
from suite.plan import Message

State = dict[str, Any]


class Compressor(Protocol):
    """Turns one message's share of an accumulated gradient into a payload.

    `compress` forms the message's share of `accumulation.acc` and leaves there what was not sent, which becomes the
    residual of error feedback. `state` holds everything else the compressor remembers between iterations, as tensors
    and plain values.
    """

    def init(self, size: int) -> State:
        """The state of a worker before its first iteration, for a gradient of `size` elements."""
        ...

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Summable | Gatherable, State]:
        """The payload of `message` and the new state; `rng` is the worker's own."""
        ...


class Identity:
    """Sends everything: dense S-SGD. The payload is a view of `acc`, which must not change before it was exchanged."""

    def init(self, size: int) -> State:
        return {}

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Summable, State]:
        return Summable(accumulation.form(message.start, message.stop)), state


class TopK:
    """Sends each segment's k entries of largest magnitude; what the wire format rounds off them stays in `acc`."""

    def __init__(self, wire: WireFormat | None = None):
        self.wire = wire or WireFormat()

    def init(self, size: int) -> State:
        return {}

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Gatherable, State]:
        acc = accumulation.acc[message.start : message.stop]
        values, indices = new_selection(message.entries, acc)
        into, places, filled = native(values), native(indices), 0
        for segment in reversed(message.segments):  # by ascending index
            part = slice(filled, filled + segment.k)
            accumulation.take_topk(segment.start, segment.stop, segment.k, message.start, places[part], into[part])
            filled += segment.k
        sent = self.wire.round_values(values)
        if sent is not values:
            acc[indices.long()] = values - sent
        return Gatherable(sent, indices, message.stop - message.start, self.wire), state

"""Compressors: from a worker's accumulated gradient and a message of the plan to a payload."""

from typing import Any, Protocol

import torch

from suite.compress.payload import Gatherable, Summable
from suite.compress.select import select_segments
from suite.plan import Message

State = dict[str, Any]


class Compressor(Protocol):
    """Turns one message's share of an accumulated gradient into a payload.

    `compress` changes `acc` [d]: it leaves there what was not sent, which becomes the residual of error feedback.
    `state` holds everything else the compressor remembers between iterations, as tensors and plain values.
    """

    def init(self, size: int) -> State:
        """The state of a worker before its first iteration, for a gradient of `size` elements."""
        ...

    def compress(
        self, acc: torch.Tensor, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Summable | Gatherable, State]:
        """The payload of `message` and the new state; `rng` is the worker's own."""
        ...


class Identity:
    """Sends everything: dense S-SGD. The payload is a view of `acc`, which must not change before it was exchanged."""

    def init(self, size: int) -> State:
        return {}

    def compress(
        self, acc: torch.Tensor, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Summable, State]:
        return Summable(acc[message.start : message.stop]), state


class TopK:
    """Sends each segment's k entries of largest magnitude and clears them in `acc`."""

    def init(self, size: int) -> State:
        return {}

    def compress(
        self, acc: torch.Tensor, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Gatherable, State]:
        segments = sorted(message.segments, key=lambda s: s.start)
        values, indices = select_segments(
            acc[message.start : message.stop], [s.size for s in segments], [s.k for s in segments]
        )
        indices += message.start
        acc.index_fill_(0, indices.long(), 0.0)
        return Gatherable(values, indices), state

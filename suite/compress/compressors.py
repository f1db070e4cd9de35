"""Compressors: from a worker's accumulated gradient and a message of the plan to a payload."""

from typing import Protocol

import torch

from suite.compress.accumulation import Accumulation
from suite.compress.payload import Gatherable, Payload, State, Summable
from suite.compress.select import native, new_selection, select_topk
from suite.compress.wire import WireFormat
from suite.plan import Layout, Message


class Compressor(Protocol):
    """Turns one message's share of an accumulated gradient into a payload.

    `compress` forms the message's share of `accumulation.acc` and leaves there what was not sent, which becomes the
    residual of error feedback. `state` holds everything else the compressor remembers between iterations, as tensors
    and plain values; a class attribute `common` that is true says that all workers remember the same.
    """

    def init(self, layout: Layout, seed: int) -> State:
        """The state of a worker before its first iteration; `seed` is the run's, the same for all workers."""
        ...

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Payload, State]:
        """The payload of `message` and the new state; `rng` is the worker's own. `state` is not changed in place."""
        ...


class Stateless:
    """A compressor that remembers nothing."""

    def init(self, layout: Layout, seed: int) -> State:
        return {}


class Identity(Stateless):
    """Sends everything: dense S-SGD. The payload is a view of `acc`, which must not change before it was exchanged."""

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Summable, State]:
        return Summable(accumulation.form(message.start, message.stop)), state


class TopK(Stateless):
    """Sends each segment's k entries of largest magnitude; what the wire format rounds off them stays in `acc`."""

    def __init__(self, wire: WireFormat | None = None):
        self.wire = wire or WireFormat()

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


class VelocityTopK(TopK):
    """Top-k of accumulated velocities, u <- mu u + g and v <- v + u, in place of gradients (deep gradient compression).

    A worker's u of every parameter tensor is its state. Where an entry of v was sent, u becomes zero too, so that old
    gradients do not push on in a direction that has been taken; a tensor that is sent whole keeps its u, which makes it
    plain momentum SGD. Segments have to be parameter tensors.

    Args:
        momentum: mu.
        masking: whether u becomes zero where an entry was sent.
    """

    def __init__(self, momentum: float, masking: bool = True, wire: WireFormat | None = None):
        super().__init__(wire)
        self.momentum, self.masking = momentum, masking

    def init(self, layout: Layout, seed: int) -> State:
        return {"velocities": {}}

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Gatherable, State]:
        velocities = {}
        for segment in message.segments:
            number, before = accumulation.number_of(segment.start), state["velocities"].get(segment.name)
            gradient = accumulation.gradients[number]
            if gradient is None:
                gradient = torch.zeros_like(accumulation.acc[segment.start : segment.stop])
            velocity = gradient.clone() if before is None else before.mul(self.momentum).add_(gradient)
            velocities[segment.name] = accumulation.gradients[number] = velocity
        payload, state = super().compress(accumulation, message, state, rng)
        if self.masking:
            sent = payload.indices.long().split([segment.k for segment in reversed(message.segments)])
            for segment, places in zip(reversed(message.segments), sent, strict=True):
                if segment.k < segment.size:
                    velocities[segment.name].index_fill_(0, places - (segment.start - message.start), 0.0)
        return payload, state | {"velocities": state["velocities"] | velocities}


class RandomTopK(Stateless):
    """Sends k entries of each segment, drawn uniformly from its r largest, as they are (rTop-k).

    The draw is a function of the worker's `rng` alone. With r = k it is top-k, with r = d random-k.

    Args:
        pool: r / k; a segment's r is at most its size. None draws from all entries.
    """

    def __init__(self, pool: float | None, wire: WireFormat | None = None):
        self.pool, self.wire = pool, wire or WireFormat()

    def candidates(self, k: int, size: int) -> int:
        """r for a segment of `size` entries."""
        return size if self.pool is None else min(size, round(self.pool * k))

    def compress(
        self, accumulation: Accumulation, message: Message, state: State, rng: torch.Generator
    ) -> tuple[Gatherable, State]:
        acc, chosen = accumulation.form(message.start, message.stop), []
        for segment in reversed(message.segments):  # by ascending index
            first, r = segment.start - message.start, self.candidates(segment.k, segment.size)
            draw = torch.randperm(r, generator=rng)[: segment.k].sort().values.to(acc.device)
            if r < segment.size:
                draw = select_topk(acc[first : first + segment.size], r)[1].long()[draw]
            chosen.append(first + draw)
        places = torch.cat(chosen)
        values = acc[places]
        sent = self.wire.round_values(values)
        acc[places] = values - sent
        return Gatherable(sent, places.to(torch.int32), message.stop - message.start, self.wire), state

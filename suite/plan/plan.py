"""Segments, messages and plans, and the two ways the core methods cut a gradient."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from suite.errors import ConfigError
from suite.plan.layout import Layout


@dataclass(frozen=True)
class Segment:
    """A slice of the flattened gradient that is compressed on its own.

    Attributes:
        name: of the parameter tensor, or a word for the whole.
        start: first element.
        size: d, elements.
        k: entries sent of it, 1 <= k <= size, where the number is random the expected one; None sends it whole
            (dense), or as `values`.
        matrix: rows and columns, where it is compressed as a matrix.
        values: float32 numbers that a worker sends in place of its entries, on average over iterations.
    """

    name: str
    start: int
    size: int
    k: int | None = None
    matrix: tuple[int, int] | None = None
    values: float | None = None

    @property
    def stop(self) -> int:
        return self.start + self.size

    @property
    def sent(self) -> float:
        """Numbers one worker sends for it, without indices."""
        if self.values is not None:
            return self.values
        return self.size if self.k is None else self.k


@dataclass(frozen=True)
class Message:
    """Segments that travel together in one collective, in back-propagation order; they lie side by side."""

    segments: tuple[Segment, ...]

    @property
    def start(self) -> int:
        """First gradient entry of the message."""
        return self.segments[-1].start

    @property
    def stop(self) -> int:
        return self.segments[0].stop

    @property
    def entries(self) -> float:
        """Gradient entries, or numbers in place of them, that the message carries for one worker."""
        return sum(segment.sent for segment in self.segments)

    @property
    def is_sparse(self) -> bool:
        return any(segment.k is not None for segment in self.segments)

    @property
    def name(self) -> str:
        first, last = self.segments[0].name, self.segments[-1].name
        return first if first == last else f"{first} .. {last}"


@dataclass(frozen=True)
class Plan:
    """Messages in back-propagation order; together their segments cover the gradient exactly once."""

    messages: tuple[Message, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(segment for message in self.messages for segment in message.segments)

    @property
    def is_sparse(self) -> bool:
        return any(message.is_sparse for message in self.messages)

    @property
    def entries(self) -> float:
        """Gradient entries, or numbers in place of them, that one worker sends an iteration."""
        return sum(message.entries for message in self.messages)

    def merged(self) -> "Plan":
        """The same segments in one message. What is selected does not change, only how often a message starts."""
        return Plan((Message(self.segments),))

    def check(self, layout: Layout) -> "Plan":
        """This plan, if it covers the layout exactly once with legal k; ValueError otherwise.

        Raises:
            ConfigError: a sparse message spans more entries than 32-bit indices reach.
        """
        for message in self.messages:
            if message.is_sparse and message.stop - message.start >= 2**31:
                raise ConfigError(
                    f"message {message.name} spans {message.stop - message.start:,} entries and needs 64-bit indices; "
                    "split it (messages: layer) so that each stays below 2**31"
                )
            for later, earlier in pairwise(message.segments):
                if earlier.stop != later.start:
                    raise ValueError(f"segments {later.name} and {earlier.name} share a message but are not neighbours")
        position = 0
        for segment in sorted(self.segments, key=lambda s: s.start):
            if segment.start != position:
                raise ValueError(f"segment {segment.name} starts at {segment.start}, the one before ends at {position}")
            if segment.k is not None and not 1 <= segment.k <= segment.size:
                raise ValueError(f"segment {segment.name} of {segment.size} entries cannot send {segment.k}")
            position = segment.stop
        if position != layout.size:
            raise ValueError(f"the plan covers {position} of {layout.size} gradient entries")
        return self


def entries_kept(size: int, density: float) -> int:
    """k = max(floor(density * d), 1), as the authors' code rounds it (algorithms of SLGS and LAGS).

    The product is nudged up by one part in 1e12 before flooring, so that 0.07 * 100 keeps 7 entries and not 6.
    """
    return min(max(math.floor(density * size * (1 + 1e-12)), 1), size)


def whole_gradient(layout: Layout, density: float | None) -> Plan:
    """One message with one segment: dense S-SGD without a density, SLGS-SGD with one."""
    k = None if density is None else entries_kept(layout.size, density)
    return Plan((Message((Segment("gradient", 0, layout.size, k),)),))


def layer_wise(layout: Layout, density_of: Callable[[str], float | None]) -> Plan:
    """One message a parameter tensor, last layer first, each with its own k: LAGS-SGD, or layer-wise dense S-SGD.

    Args:
        layout: of the gradient.
        density_of: density of a parameter tensor by name; None sends it whole.
    """
    segments = []
    for name, start, size in zip(layout.names, layout.offsets, layout.sizes, strict=True):
        density = density_of(name)
        segments.append(Segment(name, start, size, None if density is None else entries_kept(size, density)))
    return Plan(tuple(Message((segment,)) for segment in reversed(segments)))


def low_rank(layout: Layout, rank: int, share: float = 1.0) -> Plan:
    """One message a parameter tensor, last layer first: matrices as two factors, vectors whole.

    A tensor of two or more dimensions is a matrix of its first dimension by all others. Its factors of rank
    r = min(rank, n, m) have r (n + m) entries.

    Args:
        layout: of the gradient, with shapes.
        rank: the most columns a factor has.
        share: of a matrix's factors that travel in an iteration, on average.

    Raises:
        ConfigError: the layout knows sizes only, as layer times do.
    """
    segments = []
    for name, start, size, shape in zip(layout.names, layout.offsets, layout.sizes, layout.known_shapes, strict=True):
        if len(shape) < 2:
            segments.append(Segment(name, start, size))
            continue
        rows, columns = shape[0], size // shape[0]
        values = min(rank, rows, columns) * (rows + columns)
        values = values if share == 1 else share * values
        segments.append(Segment(name, start, size, matrix=(rows, columns), values=values))
    return Plan(tuple(Message((segment,)) for segment in reversed(segments)))

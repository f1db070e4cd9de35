"""Where each parameter tensor lies in the flattened gradient."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod

from suite.errors import ConfigError


@dataclass(frozen=True)
class Layout:
    """Parameter tensors in the model's own order, laid end to end.

    Attributes:
        names: dotted parameter names.
        sizes: number of elements of each.
        shapes: of each; None where only sizes are known.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...] | None = None

    @classmethod
    def of(cls, named_shapes: Iterable[tuple[str, Iterable[int]]]) -> "Layout":
        """The layout of tensors given by name and shape."""
        names, shapes = zip(*((name, tuple(shape)) for name, shape in named_shapes), strict=True)
        return cls(names, tuple(map(prod, shapes)), shapes)

    @property
    def size(self) -> int:
        """d, the length of the flattened gradient in elements."""
        return sum(self.sizes)

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """First element of each tensor, and d behind the last."""
        return tuple(accumulate(self.sizes, initial=0))

    @property
    def known_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each tensor, for plans that depend on them.

        Raises:
            ConfigError: only sizes are known.
        """
        if self.shapes is None:
            raise ConfigError(
                "this method's plan follows from the tensors' shapes, and times of layers hold their sizes only; give "
                "a configuration with a model instead"
            )
        return self.shapes

    @property
    def offsets(self) -> tuple[int, ...]:
        """First element of each tensor."""
        return self.bounds[:-1]

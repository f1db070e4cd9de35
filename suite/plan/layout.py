"""Where each parameter tensor lies in the flattened gradient."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate


@dataclass(frozen=True)
class Layout:
    """Parameter tensors in the model's own order, laid end to end.

    Attributes:
        names: dotted parameter names.
        sizes: number of elements of each.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """d, the length of the flattened gradient in elements."""
        return sum(self.sizes)

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """First element of each tensor, and d behind the last."""
        return tuple(accumulate(self.sizes, initial=0))

    @property
    def offsets(self) -> tuple[int, ...]:
        """First element of each tensor."""
        return self.bounds[:-1]

"""How the chosen entries of a message lie in the one buffer that is gathered.

Values, then indices, each padded to a multiple of four bytes. The size follows from the plan alone, never from the
data, so every worker's buffer has the same size and nobody has to announce one.
"""

from dataclasses import dataclass
from typing import Literal

import torch

ValueFormat = Literal["float32", "bfloat16"]
IndexFormat = Literal["int32", "compact"]
_BLOCK = 1 << 16
_SKIP = 255  # in the delta code: move on by this many entries without sending one


@dataclass(frozen=True)
class WireFormat:
    """Bytes an entry takes on the wire.

    Attributes:
        values: float32, 4 bytes; bfloat16, 2 bytes.
        indices: int32, 4 bytes; compact, the smaller of two codes: two bytes an entry after a 4-byte count for each
            block of 65,536 entries of the message, or one byte an entry for the distance to the entry before, with one
            more for each 255 entries passed over.
    """

    values: ValueFormat = "float32"
    indices: IndexFormat = "int32"

    def nbytes(self, k: int, span: int) -> int:
        """Bytes of a buffer with k entries out of a message of `span` entries."""
        return self._value_bytes(k) + -(-self._index_bytes(k, span) // 4) * 4

    def pack(self, values: torch.Tensor, indices: torch.Tensor, span: int) -> torch.Tensor:
        """The buffer, int32 [nbytes / 4].

        Args:
            values: float32 [k]; for bfloat16 they must have been rounded by `round_values`.
            indices: int32 [k], ascending, from 0 to span - 1.
            span: entries of the message.
        """
        k = values.numel()
        buffer = values.new_zeros(self.nbytes(k, span), dtype=torch.uint8)
        split = self._value_bytes(k)
        buffer[: k * self._dtype.itemsize] = values.to(self._dtype).view(torch.uint8)
        buffer[split : split + self._index_bytes(k, span)] = self._code(indices, span)
        return buffer.view(torch.int32)

    def unpack(self, buffer: torch.Tensor, k: int, span: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(values float32 [k], indices int32 [k]) of a buffer that `pack` made."""
        raw, split = buffer.view(torch.uint8), self._value_bytes(k)
        values = raw[: k * self._dtype.itemsize].view(self._dtype).to(torch.float32)
        return values, self._decode(raw[split : split + self._index_bytes(k, span)], k, span)

    def round_values(self, values: torch.Tensor) -> torch.Tensor:
        """What will arrive: float32 [k], never further from zero than infinity allows.

        values - rounded is exact in float32, so that what is sent and what is left still add up bit for bit.
        """
        if self.values == "float32":
            return values
        rounded = values.to(torch.bfloat16).to(torch.float32)
        # The largest floats would round up to infinity: those are cut off instead.
        cut = (values.view(torch.int32) & -_BLOCK).view(torch.float32)
        return torch.where(torch.isinf(rounded) & ~torch.isinf(values), cut, rounded)

    @property
    def _dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.values == "bfloat16" else torch.float32

    def _value_bytes(self, k: int) -> int:
        return -(-k * self._dtype.itemsize // 4) * 4

    def _by_blocks(self, k: int, span: int) -> bool:
        return 2 * k + 4 * -(-span // _BLOCK) <= k + span // _SKIP

    def _index_bytes(self, k: int, span: int) -> int:
        if self.indices == "int32":
            return 4 * k
        return 2 * k + 4 * -(-span // _BLOCK) if self._by_blocks(k, span) else k + span // _SKIP

    def _code(self, indices: torch.Tensor, span: int) -> torch.Tensor:
        k = indices.numel()
        if self.indices == "int32":
            return indices.view(torch.uint8)
        if self._by_blocks(k, span):
            counts = torch.bincount(indices >> 16, minlength=-(-span // _BLOCK)).to(torch.int32)
            return torch.cat([counts.view(torch.uint8), (indices & (_BLOCK - 1)).to(torch.uint16).view(torch.uint8)])
        gaps = indices.diff(prepend=indices.new_tensor([-1])) - 1
        skips = gaps // _SKIP
        code = indices.new_full((k + span // _SKIP,), _SKIP, dtype=torch.uint8)
        code[torch.arange(k, device=indices.device) + skips.cumsum(0)] = (gaps % _SKIP).to(torch.uint8)
        return code

    def _decode(self, code: torch.Tensor, k: int, span: int) -> torch.Tensor:
        if self.indices == "int32":
            return code.view(torch.int32)
        if self._by_blocks(k, span):
            blocks = -(-span // _BLOCK)
            counts = code[: 4 * blocks].view(torch.int32)
            base = torch.arange(blocks, dtype=torch.int32, device=code.device) << 16
            return torch.repeat_interleave(base, counts) + code[4 * blocks :].view(torch.uint16).to(torch.int32)
        entry = code != _SKIP
        position = (code.to(torch.int32) + entry).cumsum(0, dtype=torch.int32) - 1
        return position[entry][:k]

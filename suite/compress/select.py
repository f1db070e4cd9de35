"""Exact top-k by magnitude, with a defined answer for ties, on any device.

On a CPU `suite.compress.kernels` does it in one pass over memory; on other devices torch operations make the same
choice, bit for bit. Which of the two is at work shows in the type of what they are given: see `native`.
"""

import numpy as np
import torch

from suite.compress import kernels

# A vector as the code that works on it reads it: numpy's on a CPU, a tensor elsewhere.
Native = np.ndarray | torch.Tensor

_MAGNITUDE = 0x7FFFFFFF  # clears the sign bit; why magnitudes are read as integers: see suite.compress.kernels
_NOTHING = np.empty(0, np.float32)


def select_topk(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The k entries of largest magnitude; equal magnitudes are taken by lowest index, NaN is the largest.

    Args:
        x: float32 vector of d elements, 1 <= d < 2**31.
        k: entries to choose, 1 <= k <= d.

    Returns:
        (values float32 [k], indices int32 [k]), by ascending index. Values are copies, never rounded.

    Raises:
        ValueError: x is not a float32 vector, is too long for 32-bit indices, or k is out of range.
    """
    values, indices = new_selection(k, x)
    _select(native(x.detach().contiguous()), k, 0, False, native(indices), native(values))
    return values, indices


def new_selection(k: int, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Room for k of x's entries: (values float32 [k], indices int32 [k]); refuses what `select_topk` refuses."""
    if x.dtype != torch.float32 or x.dim() != 1:
        raise ValueError(f"selection reads a float32 vector, not {x.dtype} of shape {tuple(x.shape)}")
    if x.numel() >= 2**31:
        raise ValueError(f"{x.numel()} elements need 64-bit indices; split the vector into messages below 2**31")
    if not 1 <= k <= x.numel():
        raise ValueError(f"k must be between 1 and the number of elements {x.numel()}, not {k}")
    return x.new_empty(k), x.new_empty(k, dtype=torch.int32)


def native(x: torch.Tensor) -> Native:
    """The vector itself, as the functions below take it: slices of numpy's are ten times as quick as torch's."""
    return x.numpy() if on_cpu(x) else x


def on_cpu(x: torch.Tensor) -> bool:
    """Whether the kernels can read x."""
    return x.device.type == "cpu"


def take_topk(acc: Native, k: int, offset: int, indices: Native, values: Native) -> int | torch.Tensor:
    """`select_topk` that writes into `indices` (plus `offset`) and `values`, and clears in acc what it took.

    Returns:
        The largest magnitude in acc as bits of an integer; see `is_finite`.
    """
    return _select(acc, k, offset, True, indices, values)


def accumulate(acc: Native, gradient: Native, residual: Native | None, scale: float) -> int | torch.Tensor:
    """acc = residual + scale * gradient, float32 [d], rounded after each of the two operations.

    Returns:
        The largest magnitude in acc as bits of an integer; see `is_finite`.
    """
    if isinstance(acc, np.ndarray):
        return kernels.accumulate(acc, gradient, _NOTHING if residual is None else residual, np.float32(scale))
    # Two roundings, as in the kernels; torch's add with alpha would round once.
    torch.mul(gradient, scale, out=acc)
    if residual is not None:
        acc += residual
    return (acc.view(torch.int32) & _MAGNITUDE).max()


def accumulate_take_topk(
    acc: Native, gradient: Native, residual: Native | None, scale: float, k: int, offset: int, indices: Native,
    values: Native,
) -> int | torch.Tensor:  # fmt: skip
    """`accumulate` and `take_topk`; on a CPU in one pass that reads gradient and residual and writes acc once."""
    if isinstance(acc, np.ndarray):
        residual = _NOTHING if residual is None else residual
        return kernels.accumulate_select(acc, gradient, residual, np.float32(scale), k, offset, indices, values)
    accumulate(acc, gradient, residual, scale)
    return take_topk(acc, k, offset, indices, values)


def is_finite(largest: int | torch.Tensor) -> bool:
    """Whether a vector has neither NaN nor infinity, from its largest magnitude. Waits for the device."""
    return int(largest) < kernels.INFINITY


def _select(x: Native, k: int, offset: int, clear: bool, indices: Native, values: Native) -> int | torch.Tensor:
    if isinstance(x, np.ndarray):
        return kernels.select(x, k, offset, clear, indices, values)
    magnitude = x.view(torch.int32) & _MAGNITUDE
    largest = torch.topk(magnitude, k, sorted=False).values
    threshold = largest.min()
    chosen = magnitude > threshold
    ties = (magnitude == threshold).nonzero().flatten()
    chosen[ties[: k - int(chosen.sum())]] = True
    found = chosen.nonzero().flatten()
    torch.index_select(x, 0, found, out=values)
    torch.add(found, offset, out=indices)
    if clear:
        x.index_fill_(0, found, 0.0)
    return largest.max()

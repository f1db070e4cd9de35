"""Selection on one thread against a full top-k and against memory speed."""

from collections.abc import Callable
from typing import Any

import torch

from suite.bench.timing import interleaved, medians
from suite.compress import accumulate_take_topk, native, select_topk
from suite.plan import entries_kept

RESNET50 = 25_557_032  # parameters of ResNet-50

# Bytes of each element that must pass between memory and CPU, at least: float32 reads and writes.
_BYTES = {"topk": 4, "copy": 8, "ours": 4, "fused": 12}


def bench_select(size: int, density: float, repeats: int) -> dict[str, Any]:
    """Time the choice of density * size entries of a Gaussian vector on one CPU thread.

    The copy is the yardstick: it reads and writes every element once. Selection must read each at least once, the fused
    pass (residual + gradient, select, clear) must read two vectors and write one.

    Returns:
        seconds, bytes and GB/s by case, and the ratios: how many times faster than torch.topk, how many copies long.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = medians(interleaved(_cases(size, entries_kept(size, density)), repeats, warm_up=2))
    finally:
        torch.set_num_threads(before)
    moved = {name: _BYTES[name] * size for name in seconds}
    speed = moved["copy"] / seconds["copy"]
    return {
        "benchmark": "select",
        "size": size,
        "k": entries_kept(size, density),
        "threads": 1,
        "repeats": repeats,
        "ratio_to_topk": seconds["topk"] / seconds["ours"],
        "ratio_to_copy": seconds["ours"] / seconds["copy"],
        "fused_ratio_to_copy": seconds["fused"] / seconds["copy"],
        "seconds": seconds,
        "bytes_moved": moved,
        "gigabytes_per_second": {name: moved[name] / seconds[name] / 1e9 for name in seconds},
        # What each would take if memory gave it bytes as fast as it gives them to the copy.
        "limit_seconds": {name: moved[name] / speed for name in seconds},
    }


def _cases(size: int, k: int) -> dict[str, Callable[[], object]]:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(size, generator=draw)
    gradient, residual = x, torch.randn(size, generator=draw)
    acc, values, indices = torch.empty(size), torch.empty(k), torch.empty(k, dtype=torch.int32)
    left, new, old, places, into = map(native, (acc, gradient, residual, indices, values))
    return {
        "topk": lambda: torch.topk(x.abs(), k, sorted=False),
        "copy": lambda: acc.copy_(x),
        "ours": lambda: select_topk(x, k),
        "fused": lambda: accumulate_take_topk(left, new, old, 1.0, k, 0, places, into),
    }

"""Times of one worker's iteration on this device, parameter tensor by parameter tensor."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import accumulate

import numpy as np
import torch
from torch import nn

from suite.compress import accumulate_take_topk, native
from suite.compress.select import new_selection
from suite.config.costs import LayerCost, LayerCosts
from suite.plan import entries_kept
from suite.world.worker import Memory

_WARM_UP = 3  # batches that pay for allocation, lazy set-up and compilation

# From the number of a batch to its loss, in whatever has to surround forward and backward.
Loss = Callable[[int], AbstractContextManager[torch.Tensor]]


def measure_layers(
    parameters: Mapping[str, nn.Parameter],
    memory: Memory,
    loss: Loss,
    density: float,
    batches: int,
    source: str,
    progress: Callable[[range], Iterable[int]] = iter,
) -> LayerCosts:
    """Time forward, backward and selection over several batches; medians.

    A plan takes gradients last tensor first, so what a tensor costs is how much later everything up to it is there:
    with r the moment its gradient exists and R the latest r of it and of all tensors behind it in the model, backward
    is the difference of R to that of the tensor behind it (our choice). The tensors of one module, which exist at the
    same moment, thereby give their whole time to the one that a plan takes first; the times of all tensors add up to
    the backward pass. Selection is `accumulate_take_topk` on the batch's own gradient and
    the residual of the batch before.

    Args:
        parameters: float32, by name in the model's order; every one that requires a gradient.
        memory: of these parameters, with a residual; it is overwritten.
        loss: a context whose value is the loss of the batch of a number counted from 0; no parameter has a gradient
            from before. Back-propagation runs inside of it.
        density: rho of the selection, in every tensor.
        batches: measured, after three to warm up.
        source: words for where the times come from.
        progress: goes through the numbers of the batches, and may show how far they are.
    """
    names, tensors = list(parameters), list(parameters.values())
    sizes = [tensor.numel() for tensor in tensors]
    starts = list(accumulate(sizes, initial=0))
    watch = _Stopwatch(memory.accumulated.device)
    ks = [entries_kept(size, density) for size in sizes]
    moments: dict[int, float] = {}
    hooks = [
        parameter.register_post_accumulate_grad_hook(lambda _, i=i: moments.__setitem__(i, watch.stamp()))
        for i, parameter in enumerate(tensors)
    ]
    forward, ready, select = [], [], []
    try:
        for number in progress(range(_WARM_UP + batches)):
            moments.clear()
            began = watch.stamp()
            with loss(number) as value:
                middle = watch.stamp()
                value.backward()
            end = watch.stamp()
            watch.wait()
            forward.append(watch.seconds(began, middle))
            since = {i: watch.seconds(middle, moment) for i, moment in moments.items()}
            ready.append(_ready(since, watch.seconds(middle, end), len(ks)))
            gradients = [tensor.grad for tensor in tensors]
            select.append([_time_selection(watch, memory, *of) for of in zip(starts, gradients, ks, strict=False)])
            memory.keep_unsent()
    finally:
        for hook in hooks:
            hook.remove()
    # Medians of R, not of its differences: so the parts add up to the median of the whole.
    moments_ready = np.median(ready[_WARM_UP:], axis=0)
    backward = moments_ready - np.append(moments_ready[1:], 0.0)
    selection = np.median(select[_WARM_UP:], axis=0)
    rows = zip(names, sizes, backward, selection, strict=True)
    layers = tuple(LayerCost(name=name, size=size, backward=float(b), select=float(s)) for name, size, b, s in rows)
    return LayerCosts(forward=float(np.median(forward[_WARM_UP:])), layers=layers, source=source)


def _ready(moments: dict[int, float], end: float, count: int) -> list[float]:
    """R of every tensor in the model's order, from the moments its gradient existed; unused ones have none.

    The pass ends with the first tensor: what autograd does after the last gradient is charged to it.
    """
    backwards = accumulate((moments.get(i, 0.0) for i in reversed(range(count))), max)
    return [end, *list(backwards)[::-1][1:]]


def _time_selection(watch: "_Stopwatch", memory: Memory, start: int, gradient: torch.Tensor | None, k: int) -> float:
    """Seconds to accumulate, select and clear one tensor; a tensor without a gradient takes none."""
    if gradient is None:
        return 0.0
    part = slice(start, start + gradient.numel())
    acc, residual = memory.accumulated[part], native(memory.residual[part])
    values, indices = (native(empty) for empty in new_selection(k, acc))
    acc, gradient = native(acc), native(gradient.reshape(-1))
    began = watch.stamp()
    accumulate_take_topk(acc, gradient, residual, 1.0, k, 0, indices, values)
    end = watch.stamp()
    watch.wait()
    return watch.seconds(began, end)


class _Stopwatch:
    """Moments on the device's own time line: on a GPU, events, because a kernel ends after the call that starts it."""

    def __init__(self, device: torch.device):
        self.on_gpu = device.type == "cuda"

    def stamp(self):
        if not self.on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        """Until `seconds` may be asked for what was stamped."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def seconds(self, start, end) -> float:
        return start.elapsed_time(end) / 1e3 if self.on_gpu else end - start

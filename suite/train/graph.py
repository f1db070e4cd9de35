"""Forward and backward as one recorded CUDA graph: small networks otherwise wait for their kernels to be launched."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import nn

from suite.errors import ConfigError


def record_graph(model: nn.Module, sample: torch.Tensor, autocast: Callable[..., AbstractContextManager]) -> None:
    """Record the model's forward and backward passes for training batches of the sample's shape, which it then replays.

    Workers share the recording: it reads parameters and BatchNorm statistics where they lie, and a worker's statistics
    are copied there before its turn. Gradients arrive through the same hooks as without it. Evaluation runs as before.
    Running statistics are worth nothing afterwards.

    Args:
        model: in training mode, on a GPU, its parameters and buffers at their final addresses.
        sample: a batch as training will bring it, of the same shape, layout and device.
        autocast: makes the context in which the network computes.

    Raises:
        ConfigError: there is no GPU, or the network draws random numbers, which a recording would repeat.
    """
    if sample.device.type != "cuda":
        raise ConfigError("compute.cuda_graph needs a GPU, and this process has none; set it to false")
    drawing = next((name for name, part in model.named_modules() if isinstance(part, nn.Dropout) and part.p > 0), None)
    if drawing is not None:
        raise ConfigError(
            f"compute.cuda_graph cannot record {drawing}, which draws random numbers of its own for every worker; set "
            "it to false"
        )
    with autocast(cache_enabled=False):
        torch.cuda.make_graphed_callables(model, (sample,))

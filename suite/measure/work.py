"""How much arithmetic each parameter tensor stands for: the key by which a published total is spread over layers."""

from typing import Any

import torch
from torch import nn


def multiply_accumulates(model: nn.Module, *batch: torch.Tensor) -> dict[str, float]:
    """Multiply-accumulates of one forward pass, by parameter tensor in the model's order.

    A tensor is used once at each position of its module's output (pixels, tokens, rows): positions times its elements.
    Of an embedding, a row is read at each position. Back-propagation does about twice that, for every tensor alike.
    Model and batch may lie on the meta device, where nothing is computed.
    """
    work: dict[str, float] = {}

    def count(name: str, module: nn.Module, output: Any) -> None:
        output = output[0] if isinstance(output, tuple) else output
        channels = output.shape[1] if output.dim() == 4 else output.shape[-1]
        positions = output.numel() / channels
        for key, parameter in module.named_parameters(recurse=False):
            used = output.numel() / positions if isinstance(module, nn.Embedding) else parameter.numel()
            work[f"{name}.{key}" if name else key] = positions * used

    hooks = [
        module.register_forward_hook(lambda module, _, output, name=name: count(name, module, output))
        for name, module in model.named_modules()
        if next(module.parameters(recurse=False), None) is not None
    ]
    try:
        with torch.no_grad():
            model(*batch)
    finally:
        for hook in hooks:
            hook.remove()
    return {name: work.get(name, 0.0) for name, _ in model.named_parameters()}

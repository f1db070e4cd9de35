"""Layer times of a model that is not the suite's: `package.module:function` that returns a module and a batch."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from suite.config.costs import LayerCosts
from suite.config.strict import nearest
from suite.errors import ConfigError
from suite.measure.layers import measure_layers
from suite.world.worker import Memory

_SHAPE = "it must return (module, batch) or (module, batch, loss)"


def measure_own(
    target: str, density: float, batches: int, progress: Callable[[range], Iterable[int]] = iter
) -> LayerCosts:
    """Time the module that a function returns on its batch; see `suite.measure.layers.measure_layers`.

    The batch is passed to the module: a mapping by keywords, a tuple or list by position, anything else as it is. The
    loss is the mean of the output's first floating tensor, or what the function's third item makes of the output. The
    module stays where it is and in the mode it is in.

    Args:
        target: package.module:function, importable from the current folder.
        density: rho of the selection, in every tensor.
        batches: measured, after three to warm up.
        progress: goes through the numbers of the batches.

    Raises:
        ConfigError: there is no such function, it returns something else, or the module cannot be measured.
    """
    module, batch, loss = _load(target)
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    _check(target, parameters)

    @contextmanager
    def losses(number: int) -> Iterator[torch.Tensor]:
        for parameter in parameters.values():
            parameter.grad = None
        with _blaming(f"{target}: the batch does not go through the module"):
            output = _call(module, batch)
        with _blaming(f"{target}: the loss cannot be computed"):
            value = loss(output)
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
            raise ConfigError(f"{target}: the loss must be one number that depends on the parameters")
        yield value.reshape(())

    with losses(0) as value, _blaming(f"{target}: back-propagation fails"):
        value.backward()
    for name, parameter in parameters.items():
        if parameter.grad is not None and parameter.grad.is_sparse:
            raise ConfigError(f"{target}: the gradient of '{name}' is sparse already; make its layer give a dense one")
    like = next(iter(parameters.values()))
    flat = torch.zeros(sum(p.numel() for p in parameters.values()), device=like.device)
    source = (
        f"suite advise: {type(module).__name__} of {target}, {torch.get_num_threads()} threads on {like.device.type}, "
        f"density {density:g}, medians of {batches} batches"
    )
    memory = Memory(0, 0, flat, with_residual=True)
    return measure_layers(parameters, memory, losses, density, batches, source, progress)


def _load(target: str) -> tuple[nn.Module, Any, Callable[[Any], Any]]:
    """What the function returns, with a loss in any case."""
    place, _, name = target.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # a command line's own path begins with the folder of the command
    try:
        with _blaming(f"{place} cannot be imported from here"):
            code = importlib.import_module(place)
    finally:
        sys.path.remove(str(Path.cwd()))
    function = getattr(code, name, None)
    if not callable(function):
        raise ConfigError(f"{place} has no function '{name}'; {nearest(name, _functions(code))}")
    with _blaming(f"{target} fails"):
        found = function()
    if not isinstance(found, tuple) or len(found) not in (2, 3) or not isinstance(found[0], nn.Module):
        raise ConfigError(f"{target} returns {_kind(found)}; {_SHAPE} with a torch.nn.Module first")
    module, batch, *rest = found
    loss = rest[0] if rest else lambda output: _mean(target, output)
    if not callable(loss):
        raise ConfigError(
            f"{target} returns {_kind(loss)} as its third item; {_SHAPE} with a loss that takes the output"
        )
    return module, batch, loss


def _functions(code: Any) -> list[str]:
    return [name for name, value in vars(code).items() if callable(value) and not name.startswith("_")] or ["none"]


def _check(target: str, parameters: Mapping[str, nn.Parameter]) -> None:
    if not parameters:
        raise ConfigError(f"the module of {target} has no parameters to train, so nothing would be exchanged")
    for name, parameter in parameters.items():
        if parameter.dtype != torch.float32:
            kind = str(parameter.dtype).removeprefix("torch.")
            raise ConfigError(
                f"{target}: parameter '{name}' is {kind}, and selection takes float32; call module.float()"
            )
    devices = {str(parameter.device) for parameter in parameters.values()}
    if len(devices) > 1 or "meta" in devices:
        raise ConfigError(f"{target}: the module must lie on one device, not on {', '.join(sorted(devices))}")


def _call(module: nn.Module, batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return module(**batch)
    return module(*batch) if isinstance(batch, tuple | list) else module(batch)


def _mean(target: str, output: Any) -> torch.Tensor:
    found = _first_floating(output)
    if found is None:
        raise ConfigError(f"{target}: the module's output holds no floating tensor; return a loss as third item")
    return found.mean()


def _first_floating(output: Any) -> torch.Tensor | None:
    if isinstance(output, torch.Tensor):
        return output if output.is_floating_point() else None
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, tuple | list) else ()
    return next((found for part in parts if (found := _first_floating(part)) is not None), None)


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Words the failure of somebody else's code as one sentence."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{what} ({type(error).__name__}{f': {reason}' if reason else ''})") from error


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)} starting with {_kind(value[0])}" if value else "an empty tuple"
    return "None" if value is None else f"a {type(value).__name__}"

"""One of P logical SGD workers: everything random or stateful that belongs to it alone."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from suite.errors import SuiteError


class FlatParameters:
    """A model whose parameters are views of one vector, so that optimiser and exchange see one tensor.

    Attributes:
        model: the module; its parameters share memory with `vector`, its buffers with `statistics`. Both stay where
            they are for good, because a recorded CUDA graph knows them by their addresses.
        vector: float32 [d], in the order of `model.named_parameters()`.
        parameters: the views.
        statistics: a vector a dtype with all buffers of the model, whichever worker's they are at the moment.
        ascends: names of the parameters that the model maximises over (its attribute of that name). The model hands out
            their gradients negated, so that every method ascends there by its ordinary step.
    """

    def __init__(self, model: nn.Module):
        self.model = model
        named = list(model.named_parameters())
        self.names = tuple(name for name, _ in named)
        self.ascends: tuple[str, ...] = tuple(getattr(model, "ascends", ()))
        self.parameters = [parameter for _, parameter in named]
        self.vector = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        for parameter, view in zip(self.parameters, self.views(self.vector), strict=True):
            parameter.data = view
        self.buffers, self.statistics = packed(dict(model.named_buffers()))
        for name, view in self.buffers.items():
            owner, _, key = name.rpartition(".")
            model.get_submodule(owner)._buffers[key] = view

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(p.numel() for p in self.parameters)

    def views(self, vector: torch.Tensor) -> list[torch.Tensor]:
        """`vector` [d] cut into tensors of the parameters' shapes, without copying."""
        return [part.view(p.shape) for part, p in zip(vector.split(list(self.sizes)), self.parameters, strict=True)]

    def constrain(self, vector: torch.Tensor) -> None:
        """Bring parameters `vector` [d] back, in place, to where the model allows them, as its `constrain` does."""
        constrain = getattr(self.model, "constrain", None)
        if constrain is not None:
            constrain(dict(zip(self.names, self.views(vector), strict=True)))


class Memory:
    """What logical worker `index` keeps between exchanges, and what it needs for one.

    Attributes:
        seed: the run's, the same for all workers.
        accumulated: float32 [d]; during an exchange residual + gradient, after it what was not sent.
        residual: float32 [d], error-feedback memory; None for methods without it.
        compressor: what the method's compressor remembers.
        rng: generator of the compressor's random draws.
    """

    def __init__(self, index: int, seed: int, like: torch.Tensor, with_residual: bool):
        self.index, self.seed = index, seed
        self.accumulated = torch.zeros_like(like)
        self.residual = torch.zeros_like(like) if with_residual else None
        self.compressor: dict[str, Any] = {}
        self._dropout_seed, draw_seed = (
            int(s) for s in np.random.SeedSequence([seed, index]).generate_state(2, np.uint64) >> 1
        )
        self.rng = torch.Generator().manual_seed(draw_seed)

    def keep_unsent(self) -> None:
        """Make what was not sent the new residual, by swapping the two buffers."""
        if self.residual is not None:
            self.accumulated, self.residual = self.residual, self.accumulated

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and values; loads with torch's safe default."""
        return {
            "index": self.index,
            "residual": None if self.residual is None else self.residual.clone(),
            "compressor": self.compressor,
            "rng": self.rng.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict`'s values."""
        if self.residual is not None:
            self.residual.copy_(state["residual"])
        self.compressor = state["compressor"]
        self.rng.set_state(state["rng"].cpu())


class Worker(Memory):
    """State of logical worker `index`; only what is in `state_dict` may influence training.

    Attributes:
        buffers: BatchNorm statistics by dotted name, as they were after its last batch.
        statistics: a vector a dtype with all of them, of which they are views.
        local: what a local-update method steps this worker with, by name; "parameters", float32 [d], are its own. Empty
            where all workers share one vector of parameters.
        hidden: recurrent state, None where the model has none or an epoch begins.
        dropout_rng: state of the device's global generator while this worker computes (uint8 tensor).
    """

    def __init__(self, index: int, seed: int, flat: FlatParameters, with_residual: bool):
        super().__init__(index, seed, flat.vector, with_residual)
        self.flat = flat
        self.buffers, self.statistics = packed(flat.buffers)
        self.local: dict[str, Any] = {}
        self.hidden: tuple[torch.Tensor, ...] | None = None
        self._on_gpu = flat.vector.device.type == "cuda"
        device = flat.vector.device if self._on_gpu else "cpu"
        self.dropout_rng = torch.Generator(device).manual_seed(self._dropout_seed).get_state()

    @contextmanager
    def computing(self, at: torch.Tensor | None = None, continues: bool = False) -> Iterator[nn.Module]:
        """The process's model dressed as this worker's: its parameters and statistics, its random numbers.

        Args:
            at: parameters [d] to compute with instead of its own.
            continues: gradients stay, and `forget_batch` goes back to where the `computing` before began.
        """
        if self.local:
            self.flat.vector.copy_(self.local["parameters"] if at is None else at)
        for shared, own in zip(self.flat.statistics, self.statistics, strict=True):
            shared.copy_(own)
        if not continues:
            for parameter in self.flat.parameters:
                parameter.grad = None
            self._before = (self.hidden, [vector.clone() for vector in self.statistics])
        generators = torch.cuda if self._on_gpu else torch
        outside = generators.get_rng_state()
        generators.set_rng_state(self.dropout_rng)
        try:
            yield self.flat.model
        finally:
            self.dropout_rng = generators.get_rng_state()
            generators.set_rng_state(outside)
            for shared, own in zip(self.flat.statistics, self.statistics, strict=True):
                own.copy_(shared)

    def own_bytes(self) -> dict[str, int]:
        """What it remembers for the method from one iteration to the next, in bytes by name.

        That is its residual, what its compressor keeps, and all it steps with under a local-update method. Parameters
        and momentum that all workers have in common are not its own.
        """
        parts = {"residual": self.residual} | self.compressor | self.local
        return {name: size for name, part in parts.items() if (size := _tensor_bytes(part))}

    def forget_batch(self) -> None:
        """Undo what the last `computing` did to statistics and hidden state: its gradient is not used."""
        self.hidden, before = self._before
        for vector, saved in zip(self.statistics, before, strict=True):
            vector.copy_(saved)

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors and values; loads with torch's safe default."""
        return super().state_dict() | {
            "buffers": {name: buffer.clone() for name, buffer in self.buffers.items()},
            "hidden": None if self.hidden is None else [h.clone() for h in self.hidden],
            "dropout_rng": self.dropout_rng,
            "local": {name: v.clone() if isinstance(v, torch.Tensor) else v for name, v in self.local.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict`'s values."""
        super().load_state_dict(state)
        dropout_rng = state["dropout_rng"].cpu()  # generators of GPUs keep theirs there, too
        if dropout_rng.numel() != self.dropout_rng.numel():
            raise SuiteError(
                "the checkpoint is of another kind of device, whose random numbers for dropout cannot be continued "
                "here; continue on that kind, or begin in another folder with --out"
            )
        for name, buffer in self.buffers.items():
            buffer.copy_(state["buffers"][name])
        self.hidden = None if state["hidden"] is None else tuple(state["hidden"])
        self.dropout_rng = dropout_rng
        for name, value in state.get("local", {}).items():  # checkpoints of earlier versions have none
            if isinstance(value, torch.Tensor):
                self.local[name].copy_(value)  # where it is: others hold on to it
            else:
                self.local[name] = value


def _tensor_bytes(value: Any) -> int:
    """Bytes of all tensors in nested mappings and sequences."""
    if isinstance(value, torch.Tensor):
        return value.nbytes
    if isinstance(value, dict):
        value = value.values()
    return sum(map(_tensor_bytes, value)) if isinstance(value, Iterable) and not isinstance(value, str) else 0


def packed(buffers: dict[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """Copies of the buffers as views of one vector a dtype, which is quick to save; the views and the vectors."""
    views: dict[str, torch.Tensor] = {}
    vectors = []
    for dtype in {buffer.dtype: None for buffer in buffers.values()}:
        of_dtype = {name: buffer for name, buffer in buffers.items() if buffer.dtype == dtype}
        vectors.append(torch.cat([buffer.detach().reshape(-1) for buffer in of_dtype.values()]))
        parts = vectors[-1].split([buffer.numel() for buffer in of_dtype.values()])
        views |= {name: part.view(of_dtype[name].shape) for name, part in zip(of_dtype, parts, strict=True)}
    return {name: views[name] for name in buffers}, vectors

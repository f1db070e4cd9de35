"""`suite.DistributedOptimizer`: the suite's gradient exchange in somebody else's training loop."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from pydantic import ValidationError
from torch import nn

from suite.config.values import sentence
from suite.errors import ConfigError, SuiteError
from suite.measure import PhaseClock
from suite.methods import build_method, settings_from
from suite.plan import Layout
from suite.train.agreement import check_agreement, parameter_facts
from suite.train.exchange import GradientExchange
from suite.world.worker import Memory
from suite.world.world import World, adopt_world

_MAX_SKIPPED = 3  # steps in a row that a gradient which is not finite may cost, as train.max_skipped has it
_KEY = "suite"  # what the optimiser's state dictionary holds beside torch's own entries


def DistributedOptimizer(  # noqa: N802 - the name Horovod's users know
    optimizer: torch.optim.Optimizer,
    named_parameters: Iterable[tuple[str, nn.Parameter]] | None = None,
    compression: Any = None,
    backward_passes_per_step: int = 1,
    op: Any = None,
    *,
    method: str = "lags",
    seed: int = 0,
    world: World | None = None,
    **settings: Any,
) -> torch.optim.Optimizer:
    """Wrap an optimiser so that its `step` uses gradients averaged over all processes by one of the suite's methods.

    Takes the place of `horovod.torch.DistributedOptimizer`; each process is one worker. Gradients are compressed and
    sent while back-propagation goes on, and `step` waits for them. After `step`, or `synchronize`, `p.grad` holds the
    average, the same on every process.

    Args:
        optimizer: any torch optimiser; the wrapped one shares its parameter groups and state.
        named_parameters: `model.named_parameters()`; without them parameters are called after their group and place.
            Parameters that do not require a gradient now are left out.
        compression: for Horovod's call shape; only None and `Compression.none` are possible.
        backward_passes_per_step: back-propagations whose gradients add up before they are sent.
        op: for Horovod's call shape; only the average is possible.
        method: `suite list methods`.
        seed: of the method's random draws.
        world: None joins torch.distributed where the script has initialised it, and Horovod otherwise.
        settings: of the method, such as density=0.01 or wire={"indices": "compact"}.

    Raises:
        ConfigError: a setting is wrong, or a parameter of the optimiser is not among `named_parameters`.
    """
    if compression is not None and getattr(compression, "__name__", "") != "NoneCompressor":
        raise ConfigError(f"compression={compression!r} would compress twice; leave it out and choose a method instead")
    if op not in (None, 0):  # Horovod's Average is 0
        raise ConfigError("op must be the average, which is what error feedback is defined for; leave it out")
    try:
        chosen = settings_from({"name": method} | settings)
        chosen.check_momentum(max(group.get("momentum", 0.0) for group in optimizer.param_groups))
    except ValidationError as error:
        raise ConfigError(sentence(error)) from error
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if getattr(chosen, "lr_placement", "outside") == "inside":
        raise ConfigError("lr_placement must be outside here, because the learning rate is the optimiser's business")
    if chosen.needs_costs:
        raise ConfigError(f"{chosen.needs_costs} is planned from costs; that works in `suite train` only")
    parameters = _by_name(optimizer, named_parameters)
    base = type(optimizer)
    made = object.__new__(type(base.__name__, (_Distributed, base), {"__module__": __name__}))
    # A learning rate schedule made before wraps the old `step`; it must not stay in front of the new one.
    made.__dict__.update({name: value for name, value in optimizer.__dict__.items() if name != "step"})
    made._connect(parameters, build_method(chosen), backward_passes_per_step, seed, world)
    return made


def _by_name(
    optimizer: torch.optim.Optimizer, named: Iterable[tuple[str, nn.Parameter]] | None
) -> dict[str, nn.Parameter]:
    """The parameters to exchange, in the order of `named`."""
    groups = [group["params"] for group in optimizer.param_groups]
    if named is None:
        named = [(f"group{g}.{i}", p) for g, group in enumerate(groups) for i, p in enumerate(group)]
    names = dict(named)
    known = {id(p) for p in names.values()}
    ours = {id(p) for group in groups for p in group}
    if missing := len(ours - known):
        raise ConfigError(
            f"{missing} parameters of the optimiser are not among named_parameters; pass model.named_parameters() of "
            "the whole model, or leave named_parameters out"
        )
    return {name: p for name, p in names.items() if p.requires_grad and id(p) in ours}


class _Distributed:
    """What is put in front of an optimiser's own class; its methods run before the class's own."""

    def _connect(
        self, parameters: dict[str, nn.Parameter], method: Any, passes: int, seed: int, world: World | None
    ) -> None:
        self._parameters, self._passes = list(parameters.values()), passes
        flat = torch.cat([p.detach().new_zeros(p.numel(), dtype=torch.float32) for p in self._parameters])
        self._world = world or adopt_world(flat.device)
        layout = Layout.of((name, p.shape) for name, p in parameters.items())
        self._exchange = GradientExchange(method, layout, self._world, PhaseClock(), flat)
        self._exchange.shares_update = True  # as the parameters' gradients
        self._memory = Memory(self._world.rank, seed, flat, method.error_feedback)
        self._exchange.init_worker(self._memory)
        check_agreement(self._world, parameter_facts(parameters, self._parameters, self._exchange.plan))
        # `data` gives every view a version of its own, by which changes to one gradient are told from those to others.
        self._views = [
            part.view(p.shape).data
            for part, p in zip(self._exchange.update.split(list(layout.sizes)), self._parameters, strict=True)
        ]
        self._passed = [0] * len(self._parameters)
        self._versions: dict[int, int] = {}
        self._skip = self._averaged = False
        self._ours = {id(p) for p in self._parameters}
        self.skipped, self._skipped_in_a_row = 0, 0
        self._exchange.begin([self._memory], lr=1.0)
        for number, parameter in enumerate(self._parameters):
            parameter.register_post_accumulate_grad_hook(lambda p, number=number: self._take(p, number))

    @property
    def bytes_sent(self) -> float:
        """Bytes this process has put on the wire for gradients."""
        return self._world.bytes_sent

    def _take(self, parameter: nn.Parameter, number: int) -> None:
        if self._passed[number] == self._passes:
            raise SuiteError(
                "back-propagation ran more often than backward_passes_per_step before step(); raise "
                "backward_passes_per_step to add gradients up locally"
            )
        self._passed[number] += 1
        if self._passed[number] == self._passes:
            self._versions[number] = parameter.grad._version
            self._exchange.gradient_ready(0, number, parameter.grad.float())

    def synchronize(self) -> None:
        """Wait for the averages and put them into `p.grad`, so that they can be clipped before `skip_synchronize`."""
        for number, version in self._versions.items():
            grad = self._parameters[number].grad
            if grad is None or grad._version != version:
                raise SuiteError(
                    "gradients were changed after back-propagation had handed them to the exchange; call "
                    "optimizer.synchronize() first, then change them, and step inside optimizer.skip_synchronize()"
                )
        for group in self.param_groups:
            if any(p.requires_grad and id(p) not in self._ours for p in group["params"]):
                raise SuiteError(
                    "a parameter that was frozen or unknown when the optimiser was wrapped requires a gradient now; "
                    "wrap the optimiser anew after unfreezing, and load its state_dict to keep the residual"
                )
        for number, parameter in enumerate(self._parameters):
            # Too few passes: what is there counts, as Horovod has it.
            if 0 < self._passed[number] < self._passes and parameter.grad is not None:
                self._exchange.gradient_ready(0, number, parameter.grad.float())
        outcome = self._exchange.finish([0.0], stop=False, observe=False)
        finite = not outcome.status[:, 1].any()
        if finite:
            self._exchange.commit()
            self._skipped_in_a_row = 0
        else:
            self._forget_step()
        for parameter, view in zip(self._parameters, self._views, strict=True):
            parameter.grad = view.to(parameter.dtype) if finite else None
        self._passed = [0] * len(self._parameters)
        self._versions.clear()
        self._averaged = True
        self._exchange.begin([self._memory], lr=1.0)

    def _forget_step(self) -> None:
        self.skipped += 1
        self._skipped_in_a_row += 1
        if self._skipped_in_a_row == _MAX_SKIPPED:
            raise SuiteError(
                f"gradients were not finite in {_MAX_SKIPPED} steps in a row; lower the learning rate or clip"
            )
        warnings.warn("a gradient was not finite on some process: all skip this step, residuals stay", stacklevel=3)

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Inside, `step` uses `p.grad` as it is: for clipping between `synchronize` and `step`."""
        self._skip = True
        try:
            yield
        finally:
            self._skip = False

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Wait for the averaged gradients, then step as the wrapped class does."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._skip and not (self._averaged and not any(self._passed)):
            self.synchronize()
        elif not self._averaged:
            raise SuiteError("step inside skip_synchronize() needs optimizer.synchronize() before it")
        self._averaged = False
        super().step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients; refused between back-propagation and `step`, when they are on their way."""
        if any(self._passed) and not self._averaged:
            raise SuiteError(
                "zero_grad() between back-propagation and step() would lose gradients that are on their way"
            )
        super().zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped class's state, and this process's residual: every process has to save its own."""
        own = {"world_size": self._world.size, "names": list(self._exchange.layout.names)}
        own["method"] = self._exchange.method.settings.model_dump(mode="json")
        return super().state_dict() | {_KEY: self._memory.state_dict() | own}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state. Every process has to load one.

        A residual of another process or method, or none at all, makes this one begin at zero; so does what the
        compressor remembers, unless all processes remember the same of it, as low-rank factors.
        """
        state = dict(state_dict)
        own = state.pop(_KEY, None)
        if own is not None and own["names"] != list(self._exchange.layout.names):
            raise SuiteError("this state belongs to other parameters; wrap the optimiser of the model that saved it")
        super().load_state_dict(state)
        name = self._exchange.method.settings.name
        if own is not None and own["method"]["name"] != name:
            self._reset(f"is of method {own['method']['name']}")
        elif own is None or (own["residual"] is None) != (self._memory.residual is None):
            self._reset("holds no residual")
        elif (own["index"], own["world_size"]) != (self._memory.index, self._world.size):
            self._reset(f"is of process {own['index']} of {own['world_size']}")
            if getattr(self._exchange.compressor, "common", False):
                self._memory.compressor = own["compressor"]
        else:
            self._memory.load_state_dict(own)
        self._exchange.begin([self._memory], lr=1.0)

    def _reset(self, reason: str) -> None:
        if self._memory.residual is not None:
            warnings.warn(f"this optimiser state {reason}: the residual begins at zero", stacklevel=3)
            self._memory.residual.zero_()
        self._exchange.init_worker(self._memory)

"""Local-update methods in the trainer: every worker steps on its own gradient; now and then some average.

Takes the places of both gradient exchange and optimiser. Every iteration shares one row of status a worker, so that all
skip together where a gradient is not finite; parameters travel only when the method averages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from suite.config.optimizer import OptimizerConfig
from suite.measure import PhaseClock
from suite.methods.local import LocalMethod, Step
from suite.plan import Layout
from suite.train.exchange import Outcome
from suite.train.optimizer import FlatSGD, clipping
from suite.world import Worker, World
from suite.world.worker import FlatParameters


class LocalTraining:
    """Steps and averages of a local-update method.

    The optimiser's settings are every worker's: momentum of its own, weight decay on its own parameters, and its own
    gradient is what is clipped. What a test is of is the average over all workers.

    Attributes:
        steps: taken since the run began.
        since: of them, those after the last average over all workers.
        plan: what a worker hands in for one average.
    """

    measured_costs = None  # nothing here is merged by costs
    density = None

    def __init__(
        self, method: LocalMethod, layout: Layout, world: World, clock: PhaseClock, flat: FlatParameters,
        config: OptimizerConfig,
    ):  # fmt: skip
        self.method, self.layout, self.world, self.clock, self.flat, self.config = (
            method, layout, world, clock, flat, config,
        )  # fmt: skip
        method.adopt(layout, flat.ascends)
        self.plan = method.plan(layout, 0).check(layout)
        self.current_lr = config.lr
        self.steps, self.since = 0, 0
        self._workers: list[Worker] = []
        self._rules: list[FlatSGD] = []
        self._receiver: int | None = None
        self._taken = 1
        self._nothing = flat.vector.new_zeros(0)
        numbers = range(len(layout.names))
        self._ascending = {n for n in numbers if layout.names[n] in flat.ascends}
        self._others = set(numbers) - self._ascending
        self._wanted = set(numbers)

    # -- as an exchange -----------------------------------------------------------------------------------------------

    def init_worker(self, worker: Worker) -> None:
        """Give a new worker parameters of its own; called for all local workers in their order."""
        own = self.flat.vector.clone()
        # Clipping comes before the method sees a gradient, so it is not for the rule that ends a step.
        rule = FlatSGD(own, self.config.model_copy(update={"clip_norm": None}), False, self.flat.constrain)
        worker.local = {"parameters": own}
        if self.config.momentum:
            rule.momentum = worker.local["momentum"] = torch.zeros_like(own)
        if rule.average is not None:
            worker.local["average"] = rule.average.vector
        worker.local |= self.method.init(own)
        self._workers.append(worker)
        self._rules.append(rule)

    def start_epoch(self, epoch: int) -> None:
        """Nothing here depends on the epoch."""

    def listen_to(self, parameters: Sequence[nn.Parameter]) -> None:
        """Take over the gradients of these parameters, given in the order of the layout."""
        for number, parameter in enumerate(parameters):
            parameter.register_post_accumulate_grad_hook(lambda p, number=number: self._take(p, number))

    def _take(self, parameter: nn.Parameter, number: int) -> None:
        if self._receiver is None:
            return
        gradient, parameter.grad = parameter.grad, None
        if number in self._wanted:
            start, stop = self.layout.bounds[number], self.layout.bounds[number + 1]
            share = self._workers[self._receiver].accumulated[start:stop]
            share.add_(gradient.detach().reshape(-1), alpha=1 / self._taken)

    def begin(self, workers: Sequence[Worker], lr: float) -> None:
        """Start an iteration."""
        for worker in workers:
            worker.accumulated.zero_()

    @contextmanager
    def receiving(self, position: int) -> Iterator[None]:
        """The back-propagation of the local worker at `position`."""
        self._receiver = position
        try:
            with self.clock.phase("compute", traced_as="backward"):
                yield
        finally:
            self._receiver = None

    def finish(self, losses: list[float], stop: bool, observe: bool) -> Outcome:
        """Share the workers' status, as an exchange of gradients does; there is no common update."""
        with self.clock.phase("exchange", "status", traced_as="wait"):
            finite = [bool(torch.isfinite(worker.accumulated).all()) for worker in self._workers]
            rows = [[loss, not ok, stop] for loss, ok in zip(losses, finite, strict=True)]
            status = self.world.status(rows).wait()
        return Outcome(self._nothing, status, None)

    def commit(self) -> None:
        """Nothing was sent, so nothing is left over."""

    # -- as an optimiser ----------------------------------------------------------------------------------------------

    def take(self, left: int) -> int:
        """Base batches of the coming iteration, of `left` in the epoch."""
        self._taken = min(self.method.batches(self._workers[0].local), left)
        return self._taken

    def passes(self, position: int) -> Iterator[torch.Tensor | None]:
        """Points [d] at which the local worker at `position` computes the coming gradient, its own one as None."""
        second = self.method.second_point(self._workers[position].local)
        if second is not None:
            self._wanted = self._ascending
            yield second
            self._wanted = self._others
        yield None

    @torch.no_grad()
    def step(self, update: torch.Tensor, lr: float) -> None:
        """Step all local workers, each along its own gradient, and average where the method says so."""
        self.current_lr = lr
        self.steps += 1
        self.since += 1
        step = Step(self.since, self._taken)
        for worker, rule in zip(self._workers, self._rules, strict=True):
            gradient = worker.accumulated
            if self.config.clip_norm is not None:
                gradient.mul_(clipping(gradient, self.config.clip_norm))
            rule.step(self.method.direction(gradient, worker.local, step), lr)
        group = self.method.group(self.steps, self.world.size)
        if group is not None:
            with self.clock.phase("exchange", "average"):
                self._average(group)

    def _average(self, group: int) -> None:
        self.world.rounds += 1
        names = ["parameters", *(name for name in self.method.averaged if name in self._workers[0].local)]
        sums = [
            self.world.all_reduce_groups([worker.local[name] for worker in self._workers], group, f"average.{name}")
            for name in names
        ]
        found = [pending.wait() for pending in sums]
        # Members of a group share a sum, which is divided once.
        for total in {id(total): total for of_name in found for total in of_name}.values():
            total.div_(group)
        means = [dict(zip(names, of_worker, strict=True)) for of_worker in zip(*found, strict=True)]
        seen = None
        if group == self.world.size:
            self.since = 0
            told = [self.method.observe(w.local, mean) for w, mean in zip(self._workers, means, strict=True)]
            if told[0]:
                seen = self.world.status(told).wait()
        for worker, mean in zip(self._workers, means, strict=True):
            for name, vector in mean.items():
                worker.local[name].copy_(vector)
            if group == self.world.size:
                self.method.after_average(worker.local, seen, self.steps)

    @contextmanager
    def tested(self) -> Iterator[None]:
        """Inside and afterwards the model has what a test is of: the average over all workers. Entered by all."""
        name = "parameters" if self.config.average is None else "average"
        first, *others = (worker.local[name] for worker in self._workers)
        if name == "parameters" and self.since == 0:
            self.flat.vector.copy_(first)  # all are equal
        else:
            total = self.world.observe_sum([first.clone(), *others], "tested").wait()
            self.flat.vector.copy_(total / self.world.size)
        yield

    def state_dict(self) -> dict[str, Any]:
        """What the next step depends on beside the workers' own state."""
        counts = [rule.average.count for rule in self._rules if rule.average is not None]
        return {"steps": self.steps, "since": self.since, "averaged": counts[0] if counts else 0}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict`'s values."""
        self.steps, self.since = state["steps"], state["since"]
        for rule in self._rules:
            if rule.average is not None:
                rule.average.count = state["averaged"]

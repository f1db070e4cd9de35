"""One exchange: every worker's gradient in, the same averaged update out, on all processes.

Hooks hand over each gradient as back-propagation produces it. A message whose gradients are all there is accumulated,
compressed and, by the process's last worker, sent, while back-propagation goes on. Afterwards: wait, and let the
payloads make the average of what arrived. Methods differ only in the plan and the compressor they hand over.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from suite.compress import Accumulation, Payload, Summable
from suite.config.costs import Costs
from suite.measure import ArrivalWatch, PhaseClock
from suite.methods import Method
from suite.plan import Layout, Message, Plan
from suite.train.costs import CostMeter
from suite.world import World
from suite.world.transports import Pending
from suite.world.worker import Memory


@dataclass
class Outcome:
    """What an exchange gave.

    Attributes:
        update: float32 [d], the average over workers of what was sent, to be read only and until the next exchange.
        status: float64 [P, n], the rows passed in, of all workers.
        mean_accumulated: float32 [d], the average over workers of what could have been sent, when asked for.
        mean_gradient: float32 [d], the average gradient, by the learning rate under `lr_placement: inside`; when asked
            for, of a method that measures xi.
        notes: rows of observations.parquet without their iteration, when asked for.
    """

    update: torch.Tensor
    status: torch.Tensor
    mean_accumulated: torch.Tensor | None
    mean_gradient: torch.Tensor | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)


class GradientExchange:
    """Exchanges gradients by a method's plan.

    Each iteration: `begin`, then for every local worker `receiving` around its back-propagation, then `finish`, and
    `commit` unless the iteration is skipped.

    Attributes:
        last_arrival: when the last message of the last iteration was there, on the machine's monotonic clock.
    """

    def __init__(
        self, method: Method, layout: Layout, world: World, clock: PhaseClock, like: torch.Tensor, overlap: bool = True
    ):
        self.method, self.layout, self.world, self.clock, self.overlap = method, layout, world, clock, overlap
        self.compressor = method.compressor()
        self.update = torch.zeros_like(like)
        self.shares_update = False  # with somebody who may change it, so that it has to be cleared as a whole
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._receiver: int | None = None
        self.measured_costs: Costs | None = None
        # Whether messages are for the exchange to merge, by costs that it measures in the first iterations.
        self._merges = method.merges_by_costs and method.costs is None
        self._meter = CostMeter(layout) if self._merges and self._can_hide else None
        self._on_gpu = like.device.type == "cuda"
        self.start_epoch(0)

    @property
    def _can_hide(self) -> bool:
        return self.overlap and self.world.processes > 1

    def start_epoch(self, epoch: int) -> None:
        """Take the plan in force in `epoch` (from 0)."""
        self._epoch = epoch
        plan = self.method.plan(self.layout, epoch)
        if self._merges and not self._can_hide:
            plan = plan.merged()
        self.plan: Plan = plan.check(self.layout)
        # For each parameter the messages that carry it, and for each message how many parameters it waits for.
        self._carriers = [
            [i for i, message in enumerate(self.plan.messages) if message.start < stop and start < message.stop]
            for start, stop in pairwise(self.layout.bounds)
        ]
        self._parts = [sum(i in carried for carried in self._carriers) for i in range(len(self.plan.messages))]

    @property
    def density(self) -> float | None:
        """rho in force: as configured or, where ratios adapt, the share of entries that is sent; None for dense."""
        if not self.plan.is_sparse:
            return None
        return self.method.density_at(self._epoch) or self.plan.entries / self.layout.size

    def init_worker(self, worker: Memory) -> None:
        """Give a new worker the compressor's initial state."""
        worker.compressor = self.compressor.init(self.layout, worker.seed)

    def listen_to(self, parameters: Sequence[nn.Parameter]) -> None:
        """Take over the gradients of these parameters, given in the order of the layout."""
        for number, parameter in enumerate(parameters):
            parameter.register_post_accumulate_grad_hook(lambda p, number=number: self._take(p, number))

    def _take(self, parameter: nn.Parameter, number: int) -> None:
        if self._receiver is not None:
            gradient, parameter.grad = parameter.grad, None
            self.gradient_ready(self._receiver, number, gradient)

    # -- one iteration ------------------------------------------------------------------------------------------------

    def begin(self, workers: Sequence[Memory], lr: float) -> None:
        """Start an iteration of the local workers; `lr` enters here only under `lr_placement: inside`."""
        if self._meter is not None:
            self._meter.iteration_begins()
        self._workers = workers
        self._accumulations = [Accumulation(self.layout, w.accumulated, w.residual) for w in workers]
        for accumulation in self._accumulations:
            accumulation.scale = lr if self.method.lr_inside else 1.0
        self._states = [worker.compressor for worker in workers]
        self._missing = [list(self._parts) for _ in workers]
        self._payloads: list[list[Payload]] = [[] for _ in workers]
        self._started: list[Pending] = []
        self._watch = ArrivalWatch(self.clock) if self.clock.tracing else None

    @contextmanager
    def receiving(self, position: int) -> Iterator[None]:
        """The back-propagation of the local worker at `position`; it is over when its last gradient exists."""
        began = self._last_gradient = self._now()
        self._receiver = position
        if self._meter is not None and position == len(self._workers) - 1:
            self._meter.backward_begins(began)
        try:
            with self.clock.phase("compute", traced_as=""):
                yield
        finally:
            self._receiver = None
        if self.clock.tracing:
            self.clock.note("backward", "", began, self._last_gradient)

    def gradient_ready(self, position: int, number: int, gradient: torch.Tensor) -> None:
        """A local worker's gradient of parameter `number` exists; messages that waited for it alone go out."""
        appeared = self._last_gradient = self._now()
        self._accumulations[position].gradients[number] = gradient.detach().reshape(-1).contiguous()
        for message in self._carriers[number]:
            self._missing[position][message] -= 1
        if self.overlap:
            self._send_ready(position)
        if self._meter is not None and position == len(self._workers) - 1:
            self._meter.gradient(number, appeared, self._now())

    def finish(self, losses: list[float], stop: bool, observe: bool) -> Outcome:
        """Send what has not been sent, wait for everything and average.

        Args:
            losses: of the local workers' batches, shared as column 0 of the status. Column 1 tells of a gradient that
                is not finite, column 2 of a wish to stop.
            stop: this process has been asked to stop.
            observe: also average what was accumulated, for the assumption, and collect what payloads note.
        """
        clock, world = self.clock, self.world
        for position in range(len(self._workers)):
            self._missing[position] = [0] * len(self._parts)  # a parameter without a gradient counts as zero
            self._send_ready(position)
        with clock.phase("exchange", "status", traced_as="wait"):
            finite = [accumulation.is_finite() for accumulation in self._accumulations]
            status = world.status([[loss, not ok, stop] for loss, ok in zip(losses, finite, strict=True)])
        left = residuals = None
        if observe:
            with clock.phase("measure"):
                left = self._observe([worker.accumulated for worker in self._workers], "left")
                if self.method.measures_xi and self.method.error_feedback:
                    residuals = self._observe([worker.residual for worker in self._workers], "residuals")
        with clock.phase("apply", "clear"):
            self._clear_update()
        withheld, notes = self._receive(observe)
        with clock.phase("exchange", "status", traced_as="wait"):
            rows = status.wait()
        mean = gradient = None
        if left is not None:
            with clock.phase("measure"):
                # What a worker sent and what it kept add up to what it had accumulated, bit for bit.
                mean = left.wait() / world.size + self.update
                for message, part in withheld:
                    mean[message.start : message.stop] += part
                if self.method.measures_xi:
                    gradient = mean if residuals is None else mean - residuals.wait() / world.size
        if self._watch is not None:
            self._watch.close()
        if self._meter is not None and self._meter.iteration_ends():
            self._adopt(self._meter.costs(world))
        return Outcome(self.update, rows, mean, gradient, notes)

    def commit(self) -> None:
        """Keep what the last exchange left over: unsent entries become residuals, compressors their new states."""
        for worker, state in zip(self._workers, self._states, strict=True):
            worker.compressor = state
            worker.keep_unsent()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _now(self) -> float:
        """The time, where an iteration is measured or traced after all that a GPU was told to do: its calls return
        before it has done it."""
        if self._on_gpu and (self._meter is not None or self.clock.tracing):
            torch.cuda.synchronize()
        return time.monotonic()

    def _adopt(self, costs: Costs | None) -> None:
        """Merge messages by measured costs from the next iteration on."""
        if costs is not None:
            self.measured_costs = self.method.costs = costs
            self._meter, self._merges = None, False
            self.start_epoch(self._epoch)

    def _send_ready(self, position: int) -> None:
        """Compress a worker's complete messages in the plan's order; its process's last worker sends them."""
        payloads, messages = self._payloads[position], self.plan.messages
        worker, accumulation = self._workers[position], self._accumulations[position]
        while len(payloads) < len(messages) and not self._missing[position][len(payloads)]:
            number, message = len(payloads), messages[len(payloads)]
            with self.clock.phase("select", message.name):
                payload, self._states[position] = self.compressor.compress(
                    accumulation, message, self._states[position], worker.rng
                )
                payloads.append(payload)
            accumulation.release(message.start, message.stop)
            if position == len(self._workers) - 1:
                of_message = [of_worker[number] for of_worker in self._payloads]
                self._started.append(self._send(of_message, message, f"message.{number}"))

    def _send(self, payloads: list[Payload], message: Message, name: str) -> Pending:
        """Start a round of a message, of which these are the local workers' payloads."""
        first, world = payloads[0], self.world
        with self.clock.phase("exchange", message.name, traced_as="start"):
            factor = self.method.traffic(world.size, message.is_sparse)
            if isinstance(first, Summable):
                pending = world.all_reduce([payload.values for payload in payloads], name, factor)
            else:
                gather = world.all_gather if first.even else world.all_gather_uneven
                pending = gather([payload.pack() for payload in payloads], name, factor)
            if self._watch is not None:
                pending = pending.after(self._watch.started(message.name, pending.arrived))
        return pending

    def _receive(self, observe: bool) -> tuple[list[tuple[Message, torch.Tensor]], list[dict[str, Any]]]:
        """Wait for all messages, in the plan's order, and for the further rounds that some of them take.

        Returns:
            When `observe` asks for it, what payloads withheld from the update, by message, and what they note.
        """
        withheld, notes = [], []
        rounds = zip(self.plan.messages, zip(*self._payloads, strict=True), self._started, strict=True)
        waiting = deque((number, 1, *of_message) for number, of_message in enumerate(rounds))
        last = 0
        while waiting:
            number, last, message, payloads, pending = waiting.popleft()
            with self.clock.phase("exchange", message.name, traced_as="wait"):
                arrived = pending.wait()
            self.last_arrival = time.monotonic()
            with self.clock.phase("apply", message.name):
                found = payloads[0].read(arrived, self.world.size)
                replies = [payload.reply(found) for payload in payloads]
                if replies[0] is None:
                    self._settle(message, payloads, found)
            if replies[0] is not None:
                name = f"message.{number}.{type(replies[0]).__name__}"  # another one than that of the round before
                waiting.append((number, last + 1, message, replies, self._send(replies, message, name)))
            elif observe:
                with self.clock.phase("measure"):
                    part = payloads[0].withheld(found, self.world.size)
                    withheld += [] if part is None else [(message, part)]
                    values = payloads[0].notes(found)
                    notes += [{"segment": message.name, "quantity": q, "value": v} for q, v in values.items()]
        self.world.rounds += last  # rounds come in order, so that the last one is of the highest number
        return withheld, notes

    def _settle(self, message: Message, payloads: Sequence[Payload], found: Any) -> None:
        """Average a message's share, and let every worker know what became of what it sent."""
        part = slice(message.start, message.stop)
        share = self.update[part]
        self._written += [(share, indices) for indices in payloads[0].write(found, share, self.world.size)]
        for position, (worker, payload) in enumerate(zip(self._workers, payloads, strict=True)):
            left = worker.accumulated[part]
            self._states[position] = payload.settle(found, left, self._states[position], worker.index)

    def _observe(self, vectors: list[torch.Tensor], name: str) -> Pending:
        first, *others = vectors
        return self.world.observe_sum([first.clone(), *others], name)

    def _clear_update(self) -> None:
        """Zero what the last exchange wrote: a small part of a sparse update; a dense one is replaced anyway."""
        if self.shares_update:
            self.update.zero_()
        for share, indices in self._written:
            share.index_fill_(0, indices.long(), 0.0)
        self._written.clear()

"""One exchange: every worker's gradient in, the same averaged update out, on all processes.

Accumulate, compress, start all messages, wait, add up in worker order, divide by P. Dense, SLGS and LAGS differ only in
the plan and the compressor their method hands over.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from suite.compress import Gatherable, Summable
from suite.measure import PhaseClock
from suite.methods import Method
from suite.plan import Layout, Message, Plan
from suite.world import Worker, World
from suite.world.transports import Pending

AddUp = Callable[[Message, torch.Tensor], None]


@dataclass
class Outcome:
    """What an exchange gave.

    Attributes:
        update: float32 [d], the average over workers of what was sent; overwritten by the next exchange.
        status: float64 [P, n], the rows passed in, of all workers.
        mean_accumulated: float32 [d], the average over workers of what could have been sent, when asked for.
    """

    update: torch.Tensor
    status: torch.Tensor
    mean_accumulated: torch.Tensor | None


class GradientExchange:
    """Exchanges gradients by a method's plan."""

    def __init__(self, method: Method, layout: Layout, world: World, clock: PhaseClock, like: torch.Tensor):
        self.method, self.layout, self.world, self.clock = method, layout, world, clock
        self.compressor = method.compressor()
        self.update = torch.zeros_like(like)
        self.start_epoch(0)

    def start_epoch(self, epoch: int) -> None:
        """Take the plan in force in `epoch` (from 0)."""
        self.plan: Plan = self.method.plan(self.layout, epoch).check(self.layout)

    def init_worker(self, worker: Worker) -> None:
        """Give a new worker the compressor's initial state."""
        worker.compressor = self.compressor.init(self.layout.size)

    def run(self, workers: list[Worker], lr: float, losses: list[float], stop: bool, observe: bool) -> Outcome:
        """Exchange the workers' gradients; residuals and compressor states only change by `commit`.

        Args:
            workers: the local ones, in order, with fresh gradients.
            lr: learning rate in force; enters here only under `lr_placement: inside`.
            losses: of the workers' batches, shared as column 0 of the status. Column 1 tells of a gradient that is not
                finite, column 2 of a wish to stop.
            stop: this process has been asked to stop.
            observe: also average what was accumulated, for the assumption.
        """
        clock, world = self.clock, self.world
        with clock.phase("select", "accumulate"):
            finite = [self._accumulate(worker, lr) for worker in workers]
        with clock.phase("exchange", "status"):
            status = world.status([[loss, not ok, stop] for loss, ok in zip(losses, finite, strict=True)])
        observed = None
        if observe:
            with clock.phase("measure"):
                observed = world.observe_sum([worker.gradient.vector for worker in workers], "observed")
        self._states = [worker.compressor for worker in workers]
        started = [self._start(message, workers, i) for i, message in enumerate(self.plan.messages)]
        self.update.zero_()
        for message, (pending, add_up) in zip(self.plan.messages, started, strict=True):
            with clock.phase("exchange", message.name):
                arrived = pending.wait()
            with clock.phase("apply", message.name):
                add_up(message, arrived)
        with clock.phase("apply", "average"):
            self.update /= world.size
        with clock.phase("exchange", "status"):
            rows = status.wait()
        mean = None
        if observed is not None:
            with clock.phase("measure"):
                mean = observed.wait() / world.size
        return Outcome(self.update, rows, mean)

    def commit(self, workers: list[Worker]) -> None:
        """Keep what the last exchange left over: unsent entries become residuals, compressors their new states."""
        for worker, state in zip(workers, self._states, strict=True):
            worker.compressor = state
            worker.keep_unsent()

    def _accumulate(self, worker: Worker, lr: float) -> bool:
        """residual + gradient, in the gradient's buffer; tells whether the result is finite."""
        acc = worker.gradient.vector
        if self.method.lr_inside:
            acc *= lr
        if worker.residual is not None:
            acc += worker.residual.vector
        # One fast pass: a sum is finite only if all its terms are. A sum that overflows is as good a reason to skip.
        return bool(torch.isfinite(acc.sum()))

    def _start(self, message: Message, workers: list[Worker], number: int) -> tuple[Pending, AddUp]:
        with self.clock.phase("select", message.name):
            payloads = []
            for i, worker in enumerate(workers):
                payload, self._states[i] = self.compressor.compress(
                    worker.gradient.vector, message, self._states[i], worker.rng
                )
                payloads.append(payload)
        with self.clock.phase("exchange", message.name):
            name = f"message.{number}"
            if isinstance(payloads[0], Summable):
                return self.world.all_reduce([payload.values for payload in payloads], name), self._place_sum
            return self.world.all_gather([payload.pack() for payload in payloads], name), self._add_gathered

    def _add_gathered(self, message: Message, arrived: torch.Tensor) -> None:
        """Packed payloads int32 [P, 2k], added one worker after the other: the same bits in every placement."""
        for buffer in arrived:
            payload = Gatherable.unpack(buffer)
            self.update.index_add_(0, payload.indices, payload.values)

    def _place_sum(self, message: Message, arrived: torch.Tensor) -> None:
        """Summed values of the message's share of the gradient."""
        self.update[message.start : message.stop] = arrived

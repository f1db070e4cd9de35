"""One training run, from a claimed run folder to its summary. Every process of the world executes this together."""

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import torch

from suite.config import ExperimentConfig
from suite.data import Dataset, load_dataset
from suite.errors import Diverged, Interrupted, SuiteError
from suite.measure import AssumptionMeter, PhaseClock
from suite.measure.xi import xi_rows
from suite.methods import build_method
from suite.methods.local import LocalMethod
from suite.models import build_model
from suite.plan import Layout
from suite.record import RunFolder
from suite.record.atomic import write_json
from suite.record.clock import RecordClock
from suite.record.environment import describe_rank, record_environment
from suite.record.recorder import Recorder
from suite.record.summary import summarise
from suite.train.agreement import check_agreement, parameter_facts
from suite.train.checkpoint import load_checkpoint, load_workers, save_checkpoint
from suite.train.exchange import GradientExchange, Outcome
from suite.train.graph import record_graph
from suite.train.local import LocalTraining
from suite.train.memory import keep_freed_memory
from suite.train.optimizer import FlatSGD
from suite.train.progress import TrainingProgress
from suite.train.schedule import learning_rate
from suite.train.tasks import build_task
from suite.train.trace import TRACED_ITERATION, write_trace
from suite.train.watch import StallWatch
from suite.world import Worker, World
from suite.world.worker import FlatParameters

# The trainer's plain values that a checkpoint carries beside parameters, optimiser and workers.
_COUNTERS = ("iteration", "taken", "train_seconds", "epoch_loss", "skipped", "skipped_in_a_row", "resumed_at")


class Trainer:
    """Everything one process holds of a run."""

    def __init__(
        self, config: ExperimentConfig, folder: RunFolder, world: World, dataset: Dataset,
        watch: StallWatch | None = None,
    ):  # fmt: skip
        self.config, self.folder, self.world, self.dataset = config, folder, world, dataset
        self.watch = watch or StallWatch(folder.watch, world.rank, world.processes, limit=None)
        self.method = build_method(config.method, config.costs)
        self.task = build_task(dataset, config)
        self.flat = FlatParameters(build_model(config, dataset).to(world.device))
        self.layout = Layout(self.flat.names, self.flat.sizes, tuple(tuple(p.shape) for p in self.flat.parameters))
        self.clock = PhaseClock()
        self.exchange, self.optimizer = self._training()
        self.exchange.listen_to(self.flat.parameters)
        seed = config.train.seed
        self.workers = [Worker(index, seed, self.flat, self.method.error_feedback) for index in world.local]
        for worker in self.workers:
            self.exchange.init_worker(worker)
        self.meter = AssumptionMeter(seed, config.assumption.random_draw)
        self.recorder, self.records = Recorder(folder.parts), RecordClock()
        self.data_sha256 = dataset.sha256
        self.per_epoch = dataset.iterations(world.size, config.train.batch_size)
        length = config.train.epochs * self.per_epoch
        self.total = min(length, config.train.max_iterations or length)
        self.autocast = partial(
            torch.autocast, world.device.type, torch.bfloat16, enabled=config.compute.precision == "bfloat16"
        )
        if config.compute.cuda_graph:
            self.task.start_epoch(0, self.workers)
            sample, _ = self.task.inputs(self.workers[0], 0)
            record_graph(self.flat.model, sample, self.autocast)
        self.iteration = 0
        self.taken = 0  # base batches a worker has taken: one an iteration, unless the method lets batches grow
        self.train_seconds = 0.0
        self.epoch_loss = 0.0
        self.skipped_in_a_row = 0
        self.skipped = 0
        self.resumed_at: list[int] = []
        self.stop_signal = 0

    def _training(self) -> tuple[GradientExchange, FlatSGD] | tuple[LocalTraining, LocalTraining]:
        """What becomes of gradients: an exchange and a common step, or steps of every worker's own."""
        method, flat, config = self.method, self.flat, self.config
        if isinstance(method, LocalMethod):
            local = LocalTraining(method, self.layout, self.world, self.clock, flat, config.optimizer)
            return local, local
        exchange = GradientExchange(method, self.layout, self.world, self.clock, flat.vector, config.world.overlap)
        return exchange, FlatSGD(flat.vector, config.optimizer, method.lr_inside, flat.constrain)

    # -- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Train to the end, or to the iteration at which a signal was noticed."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_signal)
        self._resume()
        self._agree()
        here = describe_rank(torch.get_num_threads(), str(self.flat.vector.device))
        ranks = self.world.transport.gather_objects(here)
        if self.world.rank == 0:
            record_environment(self.folder.environment, self.config, ranks)
        density = self.method.density_at(self.config.train.epochs)
        method = self.method.label if density is None else f"{self.method.label} ({density:g})"
        title = f"{method} on {self.config.data.name}, seed {self.config.train.seed}"
        progress = TrainingProgress(title, self.total, self.iteration, enabled=self.world.rank == 0)
        try:
            while not self._done:
                self._epoch(progress)
        finally:
            progress.close()
        with self._writing():
            self._finish()

    @property
    def _done(self) -> bool:
        return self.iteration == self.total or self.taken == self.config.train.epochs * self.per_epoch

    def _epoch(self, progress: TrainingProgress) -> None:
        """The rest of the epoch the run is in."""
        epoch, first = divmod(self.taken, self.per_epoch)
        self.task.start_epoch(epoch, self.workers)
        self.exchange.start_epoch(epoch)
        if first == 0:
            self.epoch_loss = 0.0
        end = (epoch + 1) * self.per_epoch
        while self.taken < end and not self._done:
            began = time.monotonic()
            loss, stop = self._iterate(epoch, self.taken % self.per_epoch)
            self.train_seconds += time.monotonic() - began
            progress.iteration(loss)
            if self.taken == end or self._done:
                self._evaluate(epoch, progress)
            if stop or self._done or self.iteration % self.config.train.checkpoint_every == 0:
                with self._writing():
                    self._save()
            if stop and not self._done:
                raise Interrupted(
                    f"stopped by signal at iteration {self.iteration} of {self.total}; its checkpoint is in "
                    f"{self.folder.checkpoint}, and {Interrupted.promise}",
                    self.stop_signal or signal.SIGTERM,
                )

    def _iterate(self, epoch: int, number: int) -> tuple[float, bool]:
        """One iteration, from the epoch's base batch `number` on.

        Returns:
            the mean loss, and whether some process was asked to stop.
        """
        batches = self.optimizer.take(self.per_epoch - number)
        self.iteration += 1
        self.taken += batches
        clock, config = self.clock, self.config
        clock.restart(tracing=self.iteration == TRACED_ITERATION)
        self.watch.beat(f"computed in iteration {self.iteration}")
        lr = learning_rate(config.optimizer, self.world.size, epoch, number, self.per_epoch, self.iteration - 1)
        self.exchange.begin(self.workers, lr)
        coming = range(number, number + batches)
        losses = [self._compute(position, coming) for position in range(len(self.workers))]
        every = config.assumption.every
        observe = bool(every) and self.exchange.plan.is_sparse and self.iteration % every == 0
        self.watch.beat(f"waited in the exchange of iteration {self.iteration}", waiting=True)
        outcome = self.exchange.finish(losses, bool(self.stop_signal), observe)
        self.watch.beat(f"updated in iteration {self.iteration}")
        skip = bool(outcome.status[:, 1].any())
        if skip:
            self._skip()
        else:
            self.skipped_in_a_row = 0
            if observe:
                with clock.phase("measure"):
                    self._measure(outcome)
            with clock.phase("apply", "step"):
                self.exchange.commit()
                self.optimizer.step(outcome.update, lr)
        loss = float(outcome.status[:, 0].mean())
        self.epoch_loss += loss * batches
        if self.world.rank == 0:
            row = {"iteration": self.iteration, "epoch": epoch + 1, "lr": lr, "density": self.exchange.density}
            row |= {"loss": loss, "skipped": skip, "bytes_sent": self.world.bytes_sent, "timestamp": self.records.now()}
            row["batch_size"] = batches * config.train.batch_size
            self.recorder.add("iterations", row | clock.row())
        if clock.tracing:
            write_trace(self.folder, self.exchange, self.world)
        return loss, bool(outcome.status[:, 2].any())

    def _compute(self, position: int, batches: range) -> float:
        """Forward and backward of one local worker's base batches; the exchange takes the gradients as they appear.

        Returns:
            the mean loss.
        """
        worker, clock, losses = self.workers[position], self.clock, []
        self.watch.beat(f"computed for worker {worker.index} in iteration {self.iteration}")
        for point in self.optimizer.passes(position):
            if losses:  # of another point than the last, which is the worker's own: nothing but gradients is kept
                worker.forget_batch()
            losses = []
            for number in batches:
                with worker.computing(point, continues=bool(losses)) as model:
                    with clock.phase("compute", traced_as="forward"), self.autocast():
                        loss = self.task.loss(model, worker, number)
                    with self.exchange.receiving(position):
                        loss.backward()
                losses.append(float(loss.detach()))
        return sum(losses) / len(losses)

    def _skip(self) -> None:
        """A gradient somewhere is not finite: nobody steps, residuals stay, and too many in a row end the run."""
        self.skipped += 1
        self.skipped_in_a_row += 1
        for worker in self.workers:
            worker.forget_batch()
        if self.skipped_in_a_row >= self.config.train.max_skipped:
            raise Diverged(
                f"gradients were not finite in {self.skipped_in_a_row} iterations in a row, the last was "
                f"{self.iteration}; lower optimizer.lr, lengthen optimizer.warmup_epochs or set optimizer.clip_norm"
            )

    def _measure(self, outcome: Outcome) -> None:
        if self.world.rank == 0:
            x, s = outcome.mean_accumulated.cpu().numpy(), outcome.update.cpu().numpy()
            self.recorder.add("assumption", *self.meter.rows(self.exchange.plan, self.iteration, x, s))
            seen = outcome.notes
            if outcome.mean_gradient is not None:
                vectors = (outcome.mean_accumulated, outcome.update, outcome.mean_gradient)
                seen = [*seen, *xi_rows(self.exchange.plan, *vectors)]
            self.recorder.add("observations", *({"iteration": self.iteration} | row for row in seen))

    def _evaluate(self, epoch: int, progress: TrainingProgress) -> None:
        """Test on process 0, under the chosen BatchNorm statistics, and record the epoch."""
        self.watch.beat(f"gathered statistics after iteration {self.iteration}", waiting=True)
        self._adopt_statistics()
        with self.optimizer.tested():
            if self.world.rank == 0:
                self._test(epoch, progress)

    def _test(self, epoch: int, progress: TrainingProgress) -> None:
        self.watch.beat(f"tested after iteration {self.iteration}", patient=True)
        model = self.flat.model
        model.eval()
        with torch.no_grad(), self.autocast():
            scores = self.task.evaluate(model)
        model.train()
        mean_loss = self.epoch_loss / (self.taken - epoch * self.per_epoch)
        row = {"epoch": epoch + 1, "iteration": self.iteration, "train_loss": mean_loss}
        row |= {"lr": self.optimizer.current_lr, "test_loss": scores["test_loss"], "metric": self.task.metric}
        row |= {"value": scores[self.task.metric], "bytes_sent": self.world.bytes_sent, "seconds": self.train_seconds}
        row |= {"rounds": self.world.rounds, "batches": self.taken}
        self.recorder.add("epochs", row | {"timestamp": self.records.now()})
        note = f"loss {scores['test_loss']:.3f}, {self.task.metric.replace('_', ' ')} {scores[self.task.metric]:.4g}"
        progress.epoch(epoch + 1, self.iteration, note)

    def _adopt_statistics(self) -> None:
        """Put worker 0's or the workers' average BatchNorm statistics into the model."""
        # Whole vectors on the CPU: a pickled view takes all it is a view of along, and a pickled tensor its device.
        own = [[vector.cpu() for vector in worker.statistics] for worker in self.workers]
        everyone = self.world.gather_workers(own)
        chosen = everyone[:1] if self.config.train.batchnorm == "worker0" else everyone
        for shared, *vectors in zip(self.flat.statistics, *chosen, strict=True):
            shared.copy_(torch.stack([vector.double() for vector in vectors]).mean(dim=0))

    # -- what outlives the process ------------------------------------------------------------------------------------

    def _agree(self) -> None:
        """Refuse to begin where the processes differ in what they take for equal."""
        self.watch.beat("waited for all to start", waiting=True)
        facts = parameter_facts(self.flat.names, self.flat.parameters, self.exchange.plan)
        facts |= {
            "the number of training samples": self.dataset.train_size, "the number of iterations": self.total,
            "the SHA-256 of the data": self.data_sha256, "the iteration to continue from": self.iteration,
            "the SHA-256 of the parameters": self._parameters_sha256(),
        }  # fmt: skip
        check_agreement(self.world, facts)

    def _parameters_sha256(self) -> str:
        return hashlib.sha256(self.flat.vector.cpu().numpy().tobytes()).hexdigest()

    def _resume(self) -> None:
        found = load_checkpoint(self.folder.checkpoint, self.world.size, self.world.device)
        if found is None:
            if self.world.rank == 0:
                self.recorder.rewind(0)
            return
        step, shared, complaints = found
        if shared["data_sha256"] != self.data_sha256:
            raise SuiteError(f"{step} was trained on other data than is here now; begin in another folder with --out")
        load_workers(step, self.workers)
        self.flat.vector.copy_(shared["parameters"])
        self.optimizer.load_state_dict(shared["optimizer"])
        for name in _COUNTERS:  # earlier versions, without batches that grow, had no `taken`
            setattr(self, name, shared[name] if name in shared else shared["iteration"])
        self.world.bytes_sent = shared["bytes_sent"]
        self.world.rounds = shared.get("rounds", self.iteration)  # earlier versions had methods with one an iteration
        self.resumed_at.append(self.iteration)
        if self.world.rank == 0:
            self.recorder.rewind(self.iteration)
            self.records.continue_after(self.recorder.last_timestamp())
            for line in (*complaints, f"continuing {self.folder.path} from iteration {self.iteration}"):
                print(line, flush=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Say what a full or broken disk means for the run."""
        try:
            yield
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else error  # without the details pyarrow wraps around it
            raise SuiteError(
                f"{self.folder.path} could not be written at iteration {self.iteration} ({reason}); the "
                "checkpoint before is intact: make room and run the same command again to continue from it"
            ) from error

    def _save(self) -> None:
        if self.world.rank == 0:
            self.recorder.flush(self.iteration)
        shared = {name: getattr(self, name) for name in _COUNTERS}
        shared |= {"parameters": self.flat.vector, "optimizer": self.optimizer.state_dict()}
        shared |= {"bytes_sent": self.world.bytes_sent, "rounds": self.world.rounds, "data_sha256": self.data_sha256}
        save_checkpoint(self.folder.checkpoint, self.world, self.workers, self.iteration, shared, self.watch.beat)

    def _finish(self) -> None:
        """Check that all processes hold the same parameters, then write tables and summary."""
        sha = self._parameters_sha256()
        self.watch.beat("waited for all to finish", waiting=True)
        hashes = self.world.transport.gather_objects(sha)
        if len(set(hashes)) > 1:
            raise SuiteError(f"the processes ended with different parameters ({', '.join(h[:8] for h in hashes)})")
        if self.world.rank == 0:
            self.watch.beat("wrote its tables", patient=True)
            self.recorder.finish(self.folder.path)
            facts = {
                "parameters_sha256": sha, "data_sha256": self.data_sha256, "iterations": self.iteration,
                "iterations_an_epoch": self.per_epoch, "parameters": self.layout.size, "skipped": self.skipped,
                "segments": len(self.exchange.plan.segments), "messages": len(self.exchange.plan.messages),
                "dropped": self.dataset.dropped(self.world.size, self.config.train.batch_size),
                "resumed_at": self.resumed_at, "seconds": self.train_seconds,
                "higher_is_better": self.task.higher_is_better, "hidden_share": self.folder.read_hidden_share(),
                "density": self.exchange.density, "rounds": self.world.rounds,
                "own_bytes": self.workers[0].own_bytes(),
                "collective": self.method.collective_name(self.exchange.plan.is_sparse),
                "all_reduce": not self.exchange.plan.is_sparse,
            }  # fmt: skip
            write_json(
                self.folder.summary, summarise(self.config, self.folder, self.recorder, self.method.label, facts)
            )

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        if number == self.stop_signal == signal.SIGINT:
            raise Interrupted(
                f"stopped at once by a second Ctrl-C; the last checkpoint is intact, and {Interrupted.promise}", number
            )
        self.stop_signal = number


def train(config: ExperimentConfig, path: Path, world: World) -> None:
    """Run `config` in the folder `path`, which the caller has claimed."""
    torch.set_num_threads(config.world.threads)
    keep_freed_memory()
    folder, run = RunFolder(path), None
    watch = StallWatch(
        folder.watch, world.rank, world.processes, config.train.stall_limit,
        lambda error: folder.record_failure(error, run and run.iteration),
    )  # fmt: skip
    with watch:
        watch.beat("read its data", patient=True)
        dataset = load_dataset(config).to(world.device)
        try:
            run = Trainer(config, folder, world, dataset, watch)
            run.run()
        except SuiteError as error:
            folder.record_failure(error, run and run.iteration)
            raise

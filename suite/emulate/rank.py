"""What each emulated host runs: `python -m suite.emulate.rank SETTINGS`.

An iteration is that of a training run – the same exchange, plan, compressor, wire format and Horovod – except that what
a device would compute is slept. All of it happens `stretch` times as slowly as on the hosts that are emulated.
"""

import json
import os
import signal
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from suite.emulate.cores import CoreWatch
from suite.emulate.grid import Emulation
from suite.emulate.hosts import Host
from suite.errors import Interrupted, SuiteError

# Share of all cores while messages travel; above it the machine, not the network, sets their pace. It matters where the
# exchange is visible in more than this share of the iteration.
BUSY_LIMIT, _VISIBLE_LIMIT = 0.8, 0.1
_LARGEST_STRETCH = 400
# Seconds on the emulated hosts, stretched with everything else: between two looks at whether a message has arrived.
_NAP, _GLANCE = 2e-4, 5e-4
# Horovod looks for work every so many milliseconds of this machine's time. Its default of 1 would keep the cores busy
# with looking; stretched, 10 are less than that default.
_HOROVOD = {"HOROVOD_CYCLE_TIME": "10", "HOROVOD_FUSION_THRESHOLD": "0"}


@dataclass
class Series:
    """The iterations of one cell that count.

    Attributes:
        rows: one an iteration: `iteration_s`, of the slowest host in the emulated hosts' seconds; `cpu_busy`, share of
            this machine's cores that is busy while messages travel; `link_bytes`, which the kernel counted on a host's
            cable towards the switch, headers and control traffic included, mean over hosts; `counted_bytes`, by the
            suite's own count.
        events: of the last iteration, on all hosts.
    """

    stretch: float
    rows: list[dict[str, float]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def busy(self) -> float:
        """Median of `cpu_busy`."""
        return statistics.median(row["cpu_busy"] for row in self.rows)

    def is_machine_bound(self, bound: float) -> bool:
        """Whether this machine, rather than the network, decides how long an iteration takes, `bound` s without any."""
        visible = 1 - bound / statistics.median(row["iteration_s"] for row in self.rows)
        return self.busy > BUSY_LIMIT and visible > _VISIBLE_LIMIT


class Cell:
    """One emulation on this host at one stretch."""

    def __init__(self, emulation: Emulation, stretch: float, host: Host, world):
        import torch

        from suite.config.costs import Costs
        from suite.emulate.device import Device, MeasuredSelection, SleptSelection
        from suite.measure import PhaseClock
        from suite.methods import build_method, settings_from
        from suite.plan import Layout, predict_plan
        from suite.train.exchange import GradientExchange
        from suite.world.worker import Memory

        self.stretch, self.host, self.world = stretch, host, world
        costs = Costs(layers=emulation.layers, network=emulation.plan_network)
        self.layers = costs.layers
        self.sizes = tuple(layer.size for layer in self.layers.layers)
        layout = Layout(tuple(layer.name for layer in self.layers.layers), self.sizes)
        method = build_method(settings_from(emulation.method), costs)
        self.device, self.clock = Device(stretch), PhaseClock(_GLANCE * stretch)
        self.exchange = GradientExchange(method, layout, world, self.clock, torch.zeros(layout.size))
        plan, inner = self.exchange.plan, self.exchange.compressor
        self.predicted = predict_plan(plan, layout, costs, method.entry_bytes, method.collective)
        self.bound = sum(self.predicted.total(phase) for phase in ("forward", "backward", "select"))
        if emulation.selection == "measured" and plan.is_sparse:
            self.exchange.compressor = MeasuredSelection(inner, self.device)
        else:
            seconds = {e.label: e.end - e.start for e in self.predicted.events if e.phase == "select"}
            self.exchange.compressor = SleptSelection(inner, self.device, seconds)
        # No residual: any entries are as good for time as others, and the hosts share this machine's memory.
        self.memory = Memory(world.rank, 0, self.exchange.update, with_residual=False)
        self.exchange.init_worker(self.memory)
        random = torch.Generator().manual_seed(world.rank)
        # A dense sum overwrites its own summands, and only zeros stay what they are.
        longest = max(self.sizes)
        self.gradient = torch.randn(longest, generator=random) if plan.is_sparse else torch.zeros(longest)
        world.transport.nap = _NAP * stretch
        host.shape(emulation.bandwidth / stretch)

    def iteration(self) -> dict[str, Any]:
        """One iteration, begun together; what it took on this host, in the emulated hosts' seconds."""
        self.world.transport.gather_objects(None)
        sent, counted = self.host.bytes_sent(), self.world.bytes_sent
        self.clock.events.clear()
        self.clock.restart(tracing=True)
        watch = CoreWatch() if self.world.rank == 0 else None
        began = self.device.start()
        self.exchange.begin([self.memory], lr=1.0)
        self.device.compute(self.layers.forward)
        self.clock.note("forward", "", began, time.monotonic())
        with self.exchange.receiving(0):
            for number in reversed(range(len(self.sizes))):
                self.device.compute(self.layers.layers[number].backward)
                self.exchange.gradient_ready(0, number, self.gradient[: self.sizes[number]])
        self.exchange.finish([0.0], stop=False, observe=False)
        end = self.exchange.last_arrival
        travelling = [(e["start"], e["end"]) for e in self.clock.events if e["phase"] == "exchange"]
        return {
            "cpu_busy": watch.busy(travelling) if watch else None,
            "iteration_s": (end - began) / self.stretch,
            "link_bytes": self.host.bytes_sent() - sent,
            "counted_bytes": self.world.bytes_sent - counted,
            # What follows the last message, the update, belongs to no iteration here.
            "events": [
                {"rank": self.world.rank, "phase": event["phase"], "label": event["label"]}
                | {key: (min(event[key], end) - began) / self.stretch for key in ("start", "end")}
                for event in self.clock.events
                if event["phase"] in ("forward", "backward", "select", "exchange") and event["start"] < end
            ],
        }


def emulate(emulation: Emulation, host: Host, world) -> tuple[Series, Cell]:
    """Emulate a cell, at a larger stretch than asked for where this machine is the bottleneck.

    Raises:
        SuiteError: it still is at the largest.
    """
    stretch = emulation.stretch
    while stretch <= _LARGEST_STRETCH:
        cell, series = Cell(emulation, stretch, host, world), Series(stretch)
        for number in range(-1, emulation.iterations):
            own = cell.iteration()
            everyone = world.transport.gather_objects(own)
            if number < 0:
                continue  # pays for connections, payloads and buffers
            series.rows.append({
                "iteration_s": max(one["iteration_s"] for one in everyone),
                "cpu_busy": everyone[0]["cpu_busy"],
                "link_bytes": statistics.mean(one["link_bytes"] for one in everyone),
                "counted_bytes": own["counted_bytes"],
            })  # fmt: skip
            series.events = [event for one in everyone for event in one["events"]]
            if series.is_machine_bound(cell.bound):
                break
        else:
            return series, cell
        del cell
        if world.rank == 0:
            print(f"{emulation.title}: cores {series.busy:.0%} busy at stretch {stretch:g}, doubling it", flush=True)
        stretch *= 2
    raise SuiteError(
        f"{emulation.title}: this machine is the bottleneck even at stretch {stretch / 2:g}; emulate fewer hosts"
    )


def _stop(number: int, frame: FrameType | None) -> None:
    print(f"suite: the emulation stopped after its last finished cell, and {Interrupted.promise}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(128 + number)


def _main(settings: dict[str, Any]) -> None:
    host = Host(int(os.environ["SUITE_RANK"]))
    from suite.world.ranks import end_with_launcher

    end_with_launcher()
    signal.signal(signal.SIGTERM, _stop)
    os.environ.update(_HOROVOD)
    import torch

    from suite.emulate.record import Progress, write_record
    from suite.world.world import adopt_world

    torch.set_num_threads(1)
    world = adopt_world(torch.device("cpu"))
    cells = [Emulation.model_validate(cell) for cell in settings["cells"]]
    with Progress(len(cells), enabled=world.rank == 0) as progress:
        for emulation in cells:
            progress.begins(emulation)
            series, cell = emulate(emulation, host, world)
            if world.rank == 0:
                folder = Path(settings["root"]) / emulation.folder
                progress.ends(write_record(folder, emulation, series, cell, settings["environment"]))
            del cell
    world.transport.gather_objects(None)


if __name__ == "__main__":
    try:
        _main(json.loads(Path(sys.argv[1]).read_text()))
    except SuiteError as error:
        print(f"suite: {error}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    # Horovod's background thread may wait for partners at interpreter exit; everything is written.
    os._exit(0)

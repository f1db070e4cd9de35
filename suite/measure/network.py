"""Times of all-gather and all-reduce in a world on this machine, and the lines through them.

`measure_network` starts the ranks; each runs this file as a program (`python -m suite.measure.network`).
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from suite.config.costs import LinearCost, NetworkCosts
from suite.config.experiment import WorldConfig
from suite.record.atomic import write_json
from suite.world import World, open_world
from suite.world.launch import launch
from suite.world.ranks import end_with_launcher

SIZES = tuple(4**power * 1024 for power in range(9))  # bytes: 1 KB to 64 MB
COLLECTIVES = ("all_gather", "all_reduce")
_SECONDS_A_SIZE = 1.0  # what repeating one size may take, roughly; its first time warms up and does not count
# All ranks of a local run share its memory, and an all-gather's result is everybody's buffer on each of them.
_MEMORY = 2**31


@dataclass(frozen=True)
class Line:
    """t = start + per_byte * bytes, fitted; seconds and seconds a byte, with 95% confidence intervals.

    Attributes:
        clipped: the unrestricted fit had a negative start, so the line was fitted again through zero.
        deviation: largest relative distance of a measured time from the line.
    """

    start: float
    per_byte: float
    start_interval: tuple[float, float]
    per_byte_interval: tuple[float, float]
    clipped: bool
    deviation: float

    @property
    def cost(self) -> LinearCost:
        return LinearCost(start=self.start, per_byte=self.per_byte)


@dataclass(frozen=True)
class NetworkMeasurement:
    """Medians and the lines through them.

    Attributes:
        sizes: bytes that one worker contributes.
        seconds: by collective, the median over repeats of the slowest rank's time, one a size.
        repeats: how often each size was measured.
        lines: by collective.
    """

    world: WorldConfig
    sizes: list[int]
    seconds: dict[str, list[float]]
    repeats: dict[str, list[int]]
    lines: dict[str, Line]

    def costs(self) -> NetworkCosts:
        """What plans and predictions take."""
        world, lines = self.world, self.lines
        words = [f"{world.transport}, {world.workers} workers on {world.processes} processes of one machine"]
        words.append(f"{self.sizes[0]:,} to {self.sizes[-1]:,} bytes")
        for name, line in lines.items():
            (a, b), (c, d) = line.start_interval, line.per_byte_interval
            clip = ", start clipped at 0" if line.clipped else ""
            words.append(f"{name} start {a:.3g} to {b:.3g} s and {c:.3g} to {d:.3g} s/byte (95%){clip}")
        fitted = {name: line.cost for name, line in lines.items()}
        return NetworkCosts(workers=world.workers, source="suite measure network: " + "; ".join(words), **fitted)


def measure_network(config: WorldConfig, largest: int = SIZES[-1]) -> NetworkMeasurement:
    """Start the world's ranks on this machine and time its collectives; sizes that may not fit its memory are left out.

    Args:
        config: of the world; its ranks are started as `suite train` starts them.
        largest: bytes a worker contributes at most.
    """
    fits = sizes_that_fit(config, largest)
    with tempfile.TemporaryDirectory(prefix="suite-network-") as folder:
        out = Path(folder) / "times.json"
        arguments = [config.model_dump_json(), json.dumps(fits), str(out)]
        launch(config, [sys.executable, "-m", "suite.measure.network", *arguments], Path(folder) / "logs")
        found = json.loads(out.read_text())
    lines = {name: fit_line(fits, found["seconds"][name]) for name in COLLECTIVES}
    return NetworkMeasurement(config, fits, found["seconds"], found["repeats"], lines)


def sizes_that_fit(config: WorldConfig, largest: int) -> list[int]:
    """Bytes a worker can contribute without all ranks' results together filling this machine's memory."""
    return [size for size in SIZES if size <= largest and size * config.workers * config.processes <= _MEMORY]


def fit_line(sizes: list[int], seconds: list[float]) -> Line:
    """Least squares of relative errors, so that a microsecond counts at 1 KB and a millisecond at 64 MB.

    A fit with a negative start is done again through zero: no collective takes less than no time.

    Args:
        sizes: bytes, at least three different ones.
        seconds: measured, positive.
    """
    n, t = np.asarray(sizes, float), np.asarray(seconds, float)
    rows = np.stack([np.ones_like(n), n], axis=1) / t[:, None]
    (start, per_byte), (start_half, slope_half) = _least_squares(rows)
    clipped = bool(start < 0)
    if clipped:
        (per_byte,), (slope_half,) = _least_squares(rows[:, 1:])
        start = start_half = 0.0
    if per_byte < 0:  # only among sizes so small that bytes do not matter
        (start,), (start_half,) = _least_squares(rows[:, :1])
        per_byte = slope_half = 0.0
    return Line(
        start=float(start),
        per_byte=float(per_byte),
        start_interval=(float(start - start_half), float(start + start_half)),
        per_byte_interval=(float(per_byte - slope_half), float(per_byte + slope_half)),
        clipped=clipped,
        deviation=float(np.abs((start + per_byte * n) / t - 1).max()),
    )


def _least_squares(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of rows @ x = 1 and half the width of their 95% confidence intervals (Student's t)."""
    from scipy.special import stdtrit  # quantiles of Student's t; scipy.stats takes a second to import

    scale = np.abs(rows).max(axis=0)  # bytes and seconds differ by ten orders of magnitude
    scaled = rows / scale
    x, *_ = np.linalg.lstsq(scaled, np.ones(len(rows)), rcond=None)
    degrees = rows.shape[0] - rows.shape[1]
    variance = float(np.square(scaled @ x - 1).sum()) / degrees
    spread = np.sqrt(variance * np.diag(np.linalg.inv(scaled.T @ scaled)))
    return x / scale, stdtrit(degrees, 0.975) * spread / scale


def glance_at_network(world: World, sizes: Sequence[int], repeats: int) -> dict[str, Line]:
    """A quick fit of a running world's collectives, one after the other without pauses; entered by all together."""
    own = []
    for name in COLLECTIVES:
        for size in sizes:
            buffers = [torch.zeros(size // 4, device=world.device) for _ in world.local]
            moments = [time.perf_counter()]
            for _ in range(repeats):
                _once(world, name, buffers, f"{name}.{size}")
                moments.append(time.perf_counter())
            own.append(np.median(np.diff(moments)))
    seconds = np.median(world.transport.gather_objects(own), axis=0).reshape(len(COLLECTIVES), -1)
    return {name: fit_line(list(sizes), list(row)) for name, row in zip(COLLECTIVES, seconds, strict=True)}


def _time(world: World, collective: Callable[[], object]) -> list[float]:
    """Seconds of the slowest rank in each repeat; every rank takes the same number of them."""
    own: list[float] = []
    repeats = 1
    while len(own) <= repeats:
        world.transport.gather_objects(None)  # so that all start together
        began = time.perf_counter()
        collective()
        own.append(time.perf_counter() - began)
        if len(own) == 2:
            slowest = max(world.transport.gather_objects(own[-1]))
            repeats = int(np.clip(_SECONDS_A_SIZE / slowest, 3, 30))
    everyone = world.transport.gather_objects(own[1:])
    return np.max(everyone, axis=0).tolist()


def _rank(config: WorldConfig, sizes: list[int], out: Path) -> None:
    torch.set_num_threads(config.threads)
    world = open_world(config)
    seconds: dict[str, list[float]] = {name: [] for name in COLLECTIVES}
    repeats: dict[str, list[int]] = {name: [] for name in COLLECTIVES}
    for size in sizes:
        buffers = [torch.zeros(size // 4, device=world.device) for _ in world.local]
        for name in COLLECTIVES:
            times = _time(world, partial(_once, world, name, buffers, f"{name}.{size}"))
            seconds[name].append(float(np.median(times)))
            repeats[name].append(len(times))
    if world.rank == 0:
        write_json(out, {"seconds": seconds, "repeats": repeats})
    world.transport.gather_objects(None)  # nobody leaves before everybody is done
    world.transport.close()


def _once(world: World, collective: str, buffers: list[torch.Tensor], name: str) -> None:
    getattr(world, collective)(buffers, name).wait()
    if world.device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    import os

    end_with_launcher()
    _rank(WorldConfig.model_validate_json(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]))
    sys.stdout.flush()
    # Background threads of the transport may wait for partners at interpreter exit; everything is written.
    os._exit(0)

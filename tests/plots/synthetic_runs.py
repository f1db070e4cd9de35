"""The runs of the synthetic profile: comparisons, a density sweep, an ablation, runs on ranks, timings."""

import hashlib
from dataclasses import dataclass

import numpy as np

from synthetic_models import lstm_segments, resnet20_segments

ITERATIONS, EPOCHS, WORKERS = 160, 16, 16
LABELS = {"dense": "Dense S-SGD", "slgs": "SLGS-SGD", "lags": "LAGS-SGD"}
MORE = {"gtopk": "gTop-k S-SGD", "local_sgda": "Local SGDA"}  # of experiment `field`
PERIOD = 4  # steps of local_sgda between averages


@dataclass(frozen=True)
class Run:
    """One run of the synthetic profile."""

    experiment: str
    title: str
    method: str
    method_name: str
    seed: int
    density: float
    text: bool = False
    processes: int = 1
    transport: str = "virtual"
    error_feedback: bool = True
    scored: bool = True
    lr_placement: str = "outside"
    adaptive: bool = False
    precision: str = "float32"
    length: int = ITERATIONS

    @property
    def address(self) -> str:
        return f"laptop/{self.experiment}/{self.method}/{self.seed}"

    @property
    def keys(self) -> dict:
        """The columns every table starts with."""
        return {
            "experiment": self.experiment, "title": self.title, "method": self.method,
            "method_name": self.method_name, "label": (LABELS | MORE)[self.method_name], "seed": self.seed,
            "density": self.density,
        }  # fmt: skip

    @property
    def run_id(self) -> str:
        return f"{self.address}@{self._digest[:12]}"

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.address.encode()).hexdigest()

    @property
    def logs_assumption(self) -> bool:
        return self.scored and self.method_name in ("slgs", "lags")

    @property
    def segments(self) -> dict[str, int]:
        return lstm_segments() if self.text else resnet20_segments()

    @property
    def size(self) -> int:
        return sum(self.segments.values())

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(int(self._digest[:8], 16))

    @property
    def rounds(self) -> float:
        """An iteration."""
        return 1 / PERIOD if self.method_name == "local_sgda" else 1.0

    @property
    def own_bytes(self) -> int:
        """A residual, or parameters of its own."""
        return 0 if self.method_name == "dense" else 4 * self.size

    @property
    def step_bytes(self) -> float:
        """Bytes of a ring all-reduce or all-gather that one worker sends in one iteration."""
        if self.method_name in ("dense", "local_sgda"):
            return 2 * (WORKERS - 1) / WORKERS * 4 * self.size * self.rounds
        if self.method_name == "gtopk":
            return 2 * (WORKERS - 1) / WORKERS * 8 * int(self.density * self.size)
        return (WORKERS - 1) * 8 * int(self.density * self.size)


def profile_runs() -> list[Run]:
    """The runs of a laptop-like profile, in the order of its tables."""
    runs = []
    for experiment, title, text, density in (
        ("digits", "ResNet-20 on handwritten digits", False, 0.05),
        ("pydoc", "LSTM on Python's documentation", True, 0.01),
    ):
        runs += [
            Run(experiment, title, name, name, seed, np.nan if name == "dense" else density, text)
            for name in LABELS
            for seed in range(3)
        ]
    runs += [
        Run("density", "Density sweep, ResNet-20 on digits", f"{name}-{density}", name, 0, density)
        for name in ("slgs", "lags")
        for density in (0.01, 0.001)
    ]
    runs += [
        Run("residual", "Error feedback, ResNet-20 on digits", f"{name}-off", name, seed, 0.05, error_feedback=False)
        for name in ("slgs", "lags")
        for seed in range(3)
    ]
    runs += [
        Run(
            "ranks",
            "ResNet-20 on digits, real ranks",
            name,
            name,
            0,
            np.nan if name == "dense" else 0.05,
            processes=4,
            transport="horovod",
        )
        for name in LABELS
    ]
    runs += [
        Run("rate", "A smooth problem", f"{name}-{length}", name, 0, density, length=length)
        for name, density in (("dense", np.nan), ("lags", 0.05))
        for length in (ITERATIONS, 4 * ITERATIONS)
    ]
    title = "Ratios, ResNet-20 on digits"
    runs += [Run("ratio", title, "dense", "dense", 0, np.nan)]
    runs += [
        Run("ratio", title, f"{'adaptive' if adaptive else 'fixed'}-{cap}", "lags", 0, 1 / cap, adaptive=adaptive)
        for adaptive in (False, True)
        for cap in (10, 100)
    ]
    runs += [
        Run("placement", "Placement, ResNet-20 on digits", name, "lags", seed, 0.05, lr_placement=placement)
        for name, placement in (("lags", "outside"), ("lags-inside", "inside"))
        for seed in range(2)
    ]
    runs += [
        Run("precision", "Number formats, ResNet-20 on digits", name, "lags", 0, 0.05, precision=name)
        for name in ("float32", "bfloat16")
    ]
    runs += [
        Run("field", "Five methods on digits", name, name, seed, np.nan if name in ("dense", "local_sgda") else 0.05)
        for name in LABELS | MORE
        for seed in range(2)
    ]
    runs += [
        Run("overlap", "Overlap on random images", name, name, seed, 0.05, False, 4, "horovod", scored=False)
        for name in ("slgs", "lags")
        for seed in range(3)
    ]
    return runs

"""The grid a replication runs: profiles of experiments, each crossing methods with seeds.

`replications/<paper>/experiments.yaml` holds `profiles: {PROFILE: {EXPERIMENT: {...}}}`; one cell of it is one
training run with the address PROFILE/EXPERIMENT/METHOD/SEED.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, ValidationError

from suite.config.strict import Strict, nearest
from suite.config.values import merge, read_yaml, sentence
from suite.errors import ConfigError
from suite.words import listing


class ExperimentSpec(Strict):
    """One experiment of a profile."""

    title: str
    like: str | None = Field(
        None, description="experiment of the same profile whose base, methods and seeds to start from"
    )
    base: dict[str, Any] = Field({}, description="settings shared by all methods")
    methods: dict[str, dict[str, Any]] = Field({}, description="label: settings laid over base")
    seeds: tuple[NonNegativeInt, ...] | dict[str, tuple[NonNegativeInt, ...]] = Field(
        (), description="of every method, or by method label"
    )


class ReplicationSpec(Strict):
    """The whole experiments.yaml."""

    profiles: dict[str, dict[str, ExperimentSpec]]


@dataclass(frozen=True)
class Cell:
    """One training run of a profile, with its unresolved configuration."""

    profile: str
    experiment: str
    method: str
    seed: int
    title: str
    config: dict[str, Any]

    @property
    def address(self) -> str:
        return f"{self.profile}/{self.experiment}/{self.method}/{self.seed}"

    @property
    def folder(self) -> str:
        """The cell's run folder below results/<profile>/runs."""
        return f"{self.experiment}/{self.method}/{self.seed}"

    @property
    def config_hash(self) -> str:
        """What the pipeline compares to decide on a rerun: settings, not code."""
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()[:12]


def replication_folders(root: Path | None = None) -> list[Path]:
    """Folders below ./replications that define experiments."""
    return sorted(path.parent for path in (root or Path("replications")).glob("*/experiments.yaml"))


def replications_of(profile: str) -> list[Path]:
    """Folders of the replications that have this profile."""
    return [
        folder for folder in replication_folders() if profile in read_experiments(folder / "experiments.yaml").profiles
    ]


def profile_cells(profile: str) -> list[Cell]:
    """All cells of a profile, in file order; refuses one that no replication has, or more than one."""
    known: dict[str, list[Path]] = {}
    cells: list[Cell] = []
    for folder in replication_folders():
        spec = read_experiments(folder / "experiments.yaml")
        for name in spec.profiles:
            known.setdefault(name, []).append(folder)
        for name in spec.profiles.get(profile, {}):
            cells += _expand(profile, name, spec.profiles[profile])
    if not known:
        raise ConfigError("there is no replications/*/experiments.yaml here; run from the root of the suite's checkout")
    if profile not in known:
        raise ConfigError(f"unknown profile '{profile}'; {nearest(profile, known)}")
    if len(known[profile]) > 1:
        raise ConfigError(
            f"profile '{profile}' is in {listing(map(str, known[profile]))}, and its results have one place; rename it "
            "in all but one of them"
        )
    return cells


def find_cell(address: str) -> Cell:
    """The cell at PROFILE/EXPERIMENT/METHOD/SEED."""
    cells = {cell.address: cell for cell in profile_cells(address.split("/")[0])}
    if address not in cells:
        raise ConfigError(f"there is no cell '{address}'; {nearest(address, cells)}")
    return cells[address]


def read_experiments(path: Path) -> ReplicationSpec:
    """Read and check one experiments.yaml."""
    try:
        return ReplicationSpec.model_validate(read_yaml(path))
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error)}") from error


def _expand(profile: str, name: str, experiments: dict[str, ExperimentSpec]) -> list[Cell]:
    spec, parent = experiments[name], ExperimentSpec(title="")
    if spec.like is not None:
        if spec.like not in experiments:
            raise ConfigError(
                f"experiment {profile}/{name} is like '{spec.like}', which is not there; "
                f"{nearest(spec.like, experiments)}"
            )
        parent = experiments[spec.like]
    base = merge(parent.base, spec.base)
    methods, seeds = spec.methods or parent.methods, spec.seeds or parent.seeds
    if not isinstance(seeds, dict):
        seeds = dict.fromkeys(methods, seeds)
    if seeds.keys() != methods.keys() or not methods or not all(seeds.values()):
        raise ConfigError(f"experiment {profile}/{name} needs at least one method, and one seed for each and no other")
    return [
        Cell(profile, name, method, seed, spec.title, merge(merge(base, over), {"train": {"seed": seed}}))
        for method, over in methods.items()
        for seed in seeds[method]
    ]

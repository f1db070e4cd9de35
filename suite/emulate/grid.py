"""What to emulate: one cell is a method on a model over a network, with everything that its time depends on."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError, model_validator

from suite.config.costs import LayerCosts, NetworkCosts
from suite.config.profiles import replication_folders
from suite.config.strict import Strict, nearest
from suite.config.values import read_yaml, sentence
from suite.errors import ConfigError

MethodName = Literal["dense", "slgs", "lags"]
Selection = Literal["given", "ours", "measured"]


class EmulationSpec(Strict):
    """Cells that are crossed: every model with every network, method and number of workers."""

    models: tuple[str, ...] = Field(min_length=1, description="published models, or files of layer times")
    networks: tuple[str, ...] = Field(min_length=1, description="named networks, or Gb/s of a link")
    methods: tuple[MethodName, ...] = ("dense", "slgs", "lags")
    workers: tuple[PositiveInt, ...] = (16,)
    iterations: PositiveInt = Field(4, description="that count; one more comes first")
    stretch: PositiveFloat | None = Field(
        None, description="how many times as slowly as on the emulated hosts everything happens; chosen where left out"
    )
    selection: Selection = Field(
        "given",
        description="given: slept, as long as the layer times say; ours: slept, as long as ours would take on the "
        "device of published times; measured: done in earnest, each time, on this machine's processor",
    )
    copies: PositiveFloat | None = Field(
        None, description="what our selection takes, in copies of the gradient (`suite bench select`); ours needs it"
    )

    @model_validator(mode="after")
    def _complete(self) -> "EmulationSpec":
        if self.selection == "ours" and self.copies is None:
            raise ValueError("selection: ours needs copies, the fused_ratio_to_copy of `suite bench select --json`")
        if min(self.workers) < 2:
            raise ValueError("one host alone exchanges nothing; give at least 2 workers")
        return self


class EmulationsFile(Strict):
    """A whole emulations.yaml."""

    profiles: dict[str, tuple[EmulationSpec, ...]]


class Emulation(Strict):
    """One cell, complete: equal ones need no second emulation.

    Attributes:
        method: settings of the method.
        bandwidth: of the emulated links, in bit/s.
        plan_network: the collectives that messages are merged by and the iteration is predicted from.
    """

    model: str
    method: dict[str, Any]
    network: str
    bandwidth: float
    workers: int
    iterations: int
    stretch: float
    selection: str
    layers: LayerCosts
    plan_network: NetworkCosts

    @property
    def name(self) -> str:
        """Of the method, with a word for a selection that is not the given one."""
        method = self.method["name"]
        return method if self.selection in ("published", "given") else f"{method}-{self.selection}"

    @property
    def folder(self) -> str:
        """Of its record, below a profile's `emulated`."""
        return f"{self.network}/{self.workers}/{self.model.lower()}/{self.name}"

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.model}, {self.name}, {self.network}, {self.workers} hosts"

    @property
    def hash(self) -> str:
        """Of all its settings."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()[:12]


def emulations(profile: str) -> list[Emulation]:
    """The cells that replications/*/emulations.yaml list for a profile; none for a profile they do not list."""
    found: list[Emulation] = []
    for path in [folder / "emulations.yaml" for folder in replication_folders()]:
        if path.exists():
            try:
                profiles = EmulationsFile.model_validate(read_yaml(path)).profiles
            except ValidationError as error:
                raise ConfigError(f"{path}: {sentence(error)}") from error
            for spec in profiles.get(profile, ()):
                found += expand(spec)
    return found


def expand(spec: EmulationSpec, overrides: Sequence[str] = ()) -> list[Emulation]:
    """The cells of a specification, all resolved and checked.

    Args:
        overrides: `a.b=value` strings for every model, as `suite predict --set` takes them.

    Raises:
        ConfigError: there is no such model or network.
    """
    from suite.speed.subject import read_subject

    cells = []
    for model in spec.models:
        subject = read_subject(model, overrides)
        selection: str = spec.selection
        if selection == "ours":
            subject = subject.with_our_selection(spec.copies)
        elif selection == "given" and subject.published is not None:
            selection = "published"
        for network in spec.networks:
            for workers in spec.workers:
                bandwidth, costs = _network(network, workers)
                for method in spec.methods:
                    cells.append(Emulation(
                        model=_word(subject.name), method=_settings(method, subject.method), network=_word(network),
                        bandwidth=bandwidth, workers=workers, iterations=spec.iterations,
                        stretch=spec.stretch or _stretch(method, bandwidth, workers), selection=selection,
                        layers=subject.layers, plan_network=costs,
                    ))  # fmt: skip
    return cells


def _network(name: str, workers: int) -> tuple[float, NetworkCosts]:
    """Bandwidth in bit/s and collectives of a named network, or of a link of so many Gb/s."""
    from suite.speed.networks import link_at, read_network, read_networks

    try:
        gigabits = float(name)
    except ValueError:
        known = read_networks()
        if name not in known and known:
            raise ConfigError(f"there is no network '{name}'; {nearest(name, known)}, or give Gb/s") from None
        network = read_network(name)
        return network.bandwidth, network.at(workers)
    if gigabits <= 0:
        raise ConfigError(f"a network of {name} Gb/s carries nothing; give a positive number")
    return gigabits * 1e9, link_at(gigabits, workers)


def _settings(method: str, sparse: Any) -> dict[str, Any]:
    """The method with its messages merged, and with the density and wire format of the subject's sparse methods."""
    if method == "dense":
        return {"name": "dense"}
    values = sparse.model_dump(mode="json")
    return {"name": method} | {key: values[key] for key in ("density", "wire") if key in values}


def _stretch(method: str, bandwidth: float, workers: int) -> float:
    """A stretch at which two cores carry the hosts (our choice; an emulation that finds it too small doubles it).

    Dense exchange is bytes, and two cores move a quarter of a gigabit a second for each of 16 hosts. Sparse exchange is
    waiting for one another, and a step from host to host takes these cores milliseconds.
    """
    share = workers / 16
    return max(5.0, round(bandwidth / 2.5e8 * share if method == "dense" else 25 * share))


def _word(text: str) -> str:
    """A name that can be part of a path."""
    return Path(text).stem if "/" in text or text.endswith((".yaml", ".yml")) else text

"""The authors' published iteration times and the arithmetic behind S1, S2 and the largest gain of pipelining."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt, ValidationError

from suite.config.experiment import Density, ModelConfig
from suite.config.profiles import replication_folders, replications_of
from suite.config.strict import Strict, nearest
from suite.config.values import read_yaml, sentence
from suite.errors import ConfigError
from suite.words import listing


class SparseTimes(Strict):
    """Seconds an iteration that a sparse method adds to computation, and all of it."""

    selection: PositiveFloat
    exchange: PositiveFloat = Field(description="in layer-wise rows only what stays visible beside computation")
    total: PositiveFloat


class ModelTimes(Strict):
    """One model's row, in seconds an iteration, and what it was trained with."""

    model: Annotated[ModelConfig, Field(discriminator="name")]
    input: tuple[PositiveInt, ...] = Field(description="one sample: channels, height and width, or tokens of a window")
    classes: PositiveInt = Field(description="of the labels, or words of the vocabulary")
    batch: PositiveInt = Field(description="samples a worker takes an iteration")
    density: Density
    layers: str = Field(description="file of the times spread over layers, from the folder of this file")
    forward: PositiveFloat
    backward: PositiveFloat
    slgs: SparseTimes
    lags: SparseTimes


class Device(Strict):
    """What computed."""

    name: str
    memory_bandwidth: PositiveFloat = Field(description="bytes a second")
    source: str


class IterationTimes(Strict):
    """The authors' phase times."""

    source: str
    unit: str
    device: Device
    settings_source: str
    models: dict[str, ModelTimes]


class DenseTotals(Strict):
    """Dense iterations, where anyone remembers them."""

    source: str
    unit: str
    models: dict[str, PositiveFloat]


class SpeedupBound(Strict):
    """The authors' values of S_max."""

    source: str
    authors_values: dict[str, PositiveFloat]


class Claimed(Strict):
    """What the text around the numbers says."""

    source: str
    dense_over_lags: str
    saved_against_slgs: float


class Published(Strict):
    """replications/<paper>/published.yaml."""

    title: str
    iteration_times: IterationTimes
    dense_totals: DenseTotals
    speedup_bound: SpeedupBound
    claimed: Claimed


@dataclass(frozen=True)
class Row:
    """One model: published seconds and what follows from them (ratios without unit, None where dense is unknown)."""

    model: str
    times: ModelTimes
    dense: float | None
    dense_over_lags: float | None
    slgs_over_lags: float
    saved: float
    authors_bound: float | None
    bound_selection: float
    bound_exchange: float


def largest_gain(forward: float, backward: float, communication: float) -> float:
    """S_max = 1 + 1 / (t_f / min(t_b, t_c) + max(r, 1/r)), r = t_c / t_b: the paper's bound on pipelining's gain."""
    ratio = communication / backward
    return 1 + 1 / (forward / min(backward, communication) + max(ratio, 1 / ratio))


def read_published(path: Path) -> Published:
    """Read and check one published.yaml."""
    try:
        return Published.model_validate(read_yaml(path))
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error)}") from error


def all_published() -> dict[Path, Published]:
    """Every replications/*/published.yaml by its path; empty outside of a checkout."""
    paths = [folder / "published.yaml" for folder in replication_folders()]
    return {path: read_published(path) for path in paths if path.exists()}


def brings_times(profile: str) -> bool:
    """Whether the profile's replication comes with published times, beside which its report sets predicted ones."""
    return any((folder / "published.yaml").exists() for folder in replications_of(profile))


@dataclass(frozen=True)
class PublishedModel:
    """A model with published times.

    Attributes:
        layers: the file of its times by layer; LayerCosts.
    """

    name: str
    times: ModelTimes
    device: Device
    layers: Path


def published_models() -> dict[str, PublishedModel]:
    """All of them by name, in their files' order; empty outside of a checkout."""
    return {
        name: PublishedModel(name, times, published.iteration_times.device, path.parent / times.layers)
        for path, published in all_published().items()
        for name, times in published.iteration_times.models.items()
    }


def published_model(name: str) -> PublishedModel:
    """The model of that name, in whatever case.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    known = published_models()
    if not known:
        raise ConfigError("there is no replications/*/published.yaml here; run from the root of the suite's checkout")
    found = next((model for key, model in known.items() if key.lower() == name.lower()), None)
    if found is None:
        raise ConfigError(f"nobody published times of '{name}'; {nearest(name, known)}")
    return found


def arithmetic(published: Published) -> list[Row]:
    """A row a model."""
    rows = []
    for model, times in published.iteration_times.models.items():
        dense = published.dense_totals.models.get(model)
        rows.append(Row(
            model=model,
            times=times,
            dense=dense,
            dense_over_lags=None if dense is None else dense / times.lags.total,
            slgs_over_lags=times.slgs.total / times.lags.total,
            saved=1 - times.lags.total / times.slgs.total,
            authors_bound=published.speedup_bound.authors_values.get(model),
            bound_selection=largest_gain(times.forward, times.backward, times.slgs.selection),
            bound_exchange=largest_gain(times.forward, times.backward, times.slgs.exchange),
        ))  # fmt: skip
    return rows


def findings(published: Published, rows: list[Row]) -> list[str]:
    """What the numbers say about themselves, one sentence each."""
    saved = sum(row.saved for row in rows) / len(rows)
    known = [row.dense_over_lags for row in rows if row.dense_over_lags is not None]
    out = []
    if known:
        out.append(
            f"S1: dense over LAGS-SGD is {min(known):.2f} to {max(known):.2f} with the recalled dense totals on this "
            f"network, against {published.claimed.dense_over_lags} claimed for the faster one."
        )
    out.append(
        f"S2: LAGS-SGD's iteration is on average {saved:.1%} shorter than SLGS-SGD's (mean over {len(rows)} models), "
        f"against {published.claimed.saved_against_slgs:.1%} claimed for the faster network."
    )
    out += [_bound_sentence(rows, "selection"), _bound_sentence(rows, "exchange")]
    return out


def _bound_sentence(rows: list[Row], column: str) -> str:
    bounds = {row.model: getattr(row, f"bound_{column}") for row in rows}
    over = [
        f"{row.model} ({row.slgs_over_lags:.3f} measured, {bounds[row.model]:.3f} at most)"
        for row in rows
        if row.slgs_over_lags > bounds[row.model]
    ]
    agree = [row.model for row in rows if abs((row.authors_bound or 0) - bounds[row.model]) < 1e-3]
    text = f"With the {column} time as communication, S_max "
    text += f"gives the authors' values for {listing(agree)}; " if agree else "gives none of the authors' values; "
    if not over:
        return text + "no measured ratio lies above its maximum."
    return f"{text}the measured ratio lies above its own maximum for {listing(over)}."

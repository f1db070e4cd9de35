"""What times are predicted, emulated or advised for: a published model, a file of layer times, or a configuration."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from suite.config import ExperimentConfig
from suite.config.costs import LayerCosts, NetworkCosts
from suite.config.load import validate_config
from suite.config.profiles import find_cell
from suite.config.strict import Strict, nearest
from suite.config.values import apply_overrides, read_yaml, sentence
from suite.errors import ConfigError
from suite.plan import Layout
from suite.speed.published import PublishedModel, published_models

_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
WORKERS = 16  # P where neither a configuration nor the user says otherwise: the paper's


@dataclass(frozen=True)
class Subject:
    """A model with its layer times, and how its sparse methods are set.

    Attributes:
        name: of the published model, or what the user gave.
        layout: of the gradient.
        layers: times of forward, backward and selection.
        method: settings whose density, wire format and c_u the sparse methods take.
        workers: P, the configuration's or 16.
        network: the configuration's own costs.network.
        experiment: the configuration, where it is one.
        published: the published model, where it is one.
    """

    name: str
    layout: Layout
    layers: LayerCosts
    method: Any
    workers: int = WORKERS
    network: NetworkCosts | None = None
    experiment: ExperimentConfig | None = None
    published: PublishedModel | None = None

    @property
    def density(self) -> float:
        """rho of the sparse methods; 0.001 where the configuration's method has none."""
        return getattr(self.method, "density", 0.001)

    def with_shapes(self) -> "Subject":
        """The same whose layout knows the tensors' shapes, of a published model; needs torch, allocates nothing."""
        if self.published is None:
            return self
        from suite.models import describe_model

        times = self.published.times
        model = describe_model(times.model, times.input[0], times.classes)
        return replace(self, layout=Layout.of((name, p.shape) for name, p in model.named_parameters()))

    def with_selection(self, seconds: float) -> "Subject":
        """The same with all selection, of the layers together or of the whole gradient, scaled to so many seconds."""
        own = self.layers.select
        if own:
            factors = [layer.select / own for layer in self.layers.layers]
        else:
            factors = [size / self.layout.size for size in self.layout.sizes]
        scaled = [
            layer.model_copy(update={"select": factor * seconds})
            for layer, factor in zip(self.layers.layers, factors, strict=True)
        ]
        return replace(self, layers=self.layers.model_copy(update={"layers": tuple(scaled), "select_whole": None}))

    def with_our_selection(self, copies: float) -> "Subject":
        """The same with selection that takes as long as so many copies in the memory of the device.

        A copy reads and writes 4 bytes an element; the device is the one of the published times. Assumed: selection is
        bound by memory there as it is here (our choice).

        Args:
            copies: `fused_ratio_to_copy` of `suite bench select`.

        Raises:
            ConfigError: the device's memory bandwidth is not known.
        """
        if self.published is None:
            raise ConfigError(
                "our selection is scaled to the device of published times, and these layer times have none; times "
                "from `suite measure layers` already hold our selection"
            )
        second = copies * 8 / self.published.device.memory_bandwidth
        layers = [layer.model_copy(update={"select": second * layer.size}) for layer in self.layers.layers]
        return replace(self, layers=self.layers.model_copy(update={"layers": tuple(layers), "select_whole": None}))


class _Given(Strict):
    """What may be set of a subject without a configuration."""

    layers: LayerCosts
    method: Any = Field(description="density, wire and the like of the sparse methods")

    @field_validator("method", mode="plain")
    @classmethod
    def _settings(cls, value: Any) -> Any:
        from suite.methods import settings_from

        return settings_from(value)


def read_subject(text: str, overrides: Sequence[str] = ()) -> Subject:
    """What SUBJECT names.

    Args:
        text: a published model's name, the path of a YAML file of layer times or of a configuration with `costs`, or
            the address of a cell.
        overrides: `a.b=value` strings: of a configuration any of its keys, otherwise of `method` and `layers`.

    Raises:
        ConfigError: it is none of these, or lacks times or sizes.
    """
    values = _values(text)
    if values is None:
        return _published(text, overrides)
    if _are_layers(values):
        return as_subject(text, values, overrides)
    return of_experiment(text, validate_config(apply_overrides(values, list(overrides))))


def is_import_path(text: str) -> bool:
    """Whether SUBJECT has the form package.module:function and is no file: a model of the user's own."""
    return _IMPORT_PATH.fullmatch(text) is not None and not Path(text).exists()


def lacks_times(text: str, overrides: Sequence[str] = ()) -> bool:
    """Whether SUBJECT is a configuration without costs, whose layers would have to be measured."""
    values = _values(text)
    return values is not None and not _are_layers(values) and not apply_overrides(values, list(overrides)).get("costs")


def _values(text: str) -> dict[str, Any] | None:
    """What a file or a cell of this name holds; None where there is neither."""
    path = Path(text)
    if path.is_file():
        return read_yaml(path)
    return find_cell(text).config if text.count("/") == 3 else None


def _are_layers(values: dict[str, Any]) -> bool:
    return "forward" in values and "layers" in values


def as_subject(name: str, layers: dict[str, Any], overrides: Sequence[str] = (), density: float = 0.001) -> Subject:
    """A subject of plain layer times, with overrides of `method` and `layers`.

    Raises:
        ConfigError: the values are not layer times, or have no sizes.
    """
    values = {"layers": layers, "method": {"name": "lags", "density": density}}
    try:
        given = _Given.model_validate(apply_overrides(values, list(overrides)))
    except ValidationError as error:
        raise ConfigError(f"{name}: {sentence(error)}") from error
    layout = _layout(given.layers)
    if layout is None:
        raise ConfigError(f"{name} holds no sizes of layers; measure it again with `suite measure layers`")
    return Subject(name, layout, given.layers, given.method)


def of_experiment(name: str, experiment: ExperimentConfig) -> Subject:
    """A configuration's model under its own costs.

    Raises:
        ConfigError: it has none, or those of another model.
    """
    costs = experiment.costs
    if costs is None:
        raise ConfigError(
            f"{name} has no layer times to predict from; set costs.layers and costs.network in it (`suite measure "
            "layers`, `suite measure network`), or name a published model or a file of layer times"
        )
    layout = _layout(costs.layers) or layout_of(experiment)
    costs.layers.check(layout.names)
    return Subject(name, layout, costs.layers, experiment.method, experiment.world.workers, costs.network, experiment)


def layout_of(experiment: ExperimentConfig) -> Layout:
    """Where the parameter tensors of a configuration's model lie in its gradient; needs torch, allocates nothing."""
    from suite.data import load_dataset
    from suite.models import describe_model

    dataset = load_dataset(experiment)
    named = list(describe_model(experiment.model, dataset.channels, dataset.classes).named_parameters())
    return Layout.of((name, p.shape) for name, p in named)


def described_layout(experiment: ExperimentConfig) -> Layout:
    """`layout_of`, which reads no data where settings tell all that the model depends on."""
    from suite.models import describe_model

    data = experiment.data
    if not hasattr(data, "classes") or not (hasattr(data, "channels") or experiment.model.kind == "text"):
        return layout_of(experiment)
    named = describe_model(experiment.model, getattr(data, "channels", 1), data.classes).named_parameters()
    return Layout.of((name, p.shape) for name, p in named)


def _published(name: str, overrides: Sequence[str]) -> Subject:
    known = published_models()
    model = next((model for key, model in known.items() if key.lower() == name.lower()), None)
    if model is None:
        hint = nearest(name, known) if known else "published models are known in the suite's checkout only"
        raise ConfigError(f"there is neither a file '{name}' nor a model of that name with published times; {hint}")
    found = as_subject(model.name, read_yaml(model.layers), overrides, model.times.density)
    return replace(found, published=model)


def _layout(layers: LayerCosts) -> Layout | None:
    """The layout that the times' own sizes give; None where one has no size."""
    sizes = [layer.size for layer in layers.layers]
    return None if None in sizes else Layout(tuple(layer.name for layer in layers.layers), tuple(sizes))

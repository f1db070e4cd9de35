"""What an iteration is made of, in seconds: layers on this device and collectives on this network.

Measured by `suite measure layers` and `suite measure network`, or written by hand from published fits. Plans that adapt
ratios or merge messages, and every predicted timeline, are computed from these.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator, model_validator

from suite.config.strict import Strict, nearest
from suite.errors import ConfigError

# How a refusal for the lack of costs ends.
HOW_TO_GET_COSTS = (
    "set costs to the costs.yaml of a run on several processes, or costs.layers and costs.network to what "
    "`suite measure layers` and `suite measure network` write"
)


class LayerCost(Strict):
    """One parameter tensor, in seconds an iteration of one worker."""

    name: str = Field(description="of the parameter tensor")
    size: PositiveInt | None = Field(None, description="elements; lets times be used without the model they are of")
    backward: NonNegativeFloat = Field(description="seconds of back-propagation that end when its gradient exists")
    select: NonNegativeFloat = Field(0.0, description="seconds to accumulate its gradient and choose what is sent")


class LayerCosts(Strict):
    """Times of one model on one device."""

    source: str = Field("", description="where the times come from")
    forward: NonNegativeFloat = Field(description="seconds of the whole forward pass")
    select_whole: NonNegativeFloat | None = Field(
        None, description="seconds of one selection over the whole gradient, where it is not the sum of the layers'"
    )
    layers: tuple[LayerCost, ...] = Field(min_length=1, description="in the model's order, as named_parameters()")

    @model_validator(mode="after")
    def _distinct(self) -> "LayerCosts":
        names = [layer.name for layer in self.layers]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"layer '{twice}' has two times; give every parameter tensor one")
        return self

    @property
    def backward(self) -> float:
        """Seconds of the whole backward pass."""
        return sum(layer.backward for layer in self.layers)

    @property
    def select(self) -> float:
        """Seconds to select from every layer."""
        return sum(layer.select for layer in self.layers)

    def check(self, names: Iterable[str]) -> None:
        """Refuse times of another model: `names` are the model's parameter tensors in its order; ConfigError."""
        names, own = tuple(names), tuple(layer.name for layer in self.layers)
        if own == names:
            return
        missing = [name for name in names if name not in set(own)]
        if missing:
            what = f"lacks the model's layer '{missing[0]}'"
        elif len(own) > len(names):
            extra = next(name for name in own if name not in set(names))
            what = f"has a layer '{extra}' that the model lacks; {nearest(extra, names)}"
        else:
            what = "has the model's layers in another order"
        raise ConfigError(f"costs.layers {what}; measure this model with `suite measure layers`")


class LinearCost(Strict):
    """Time of one collective in a fixed world, as a line over the bytes that one worker contributes."""

    start: NonNegativeFloat = Field(description="seconds of an empty one")
    per_byte: NonNegativeFloat = Field(description="seconds a byte of the buffer that one worker hands in")

    def seconds(self, size: float) -> float:
        """Seconds of a collective to which every worker contributes `size` bytes."""
        return self.start + self.per_byte * size


class NetworkCosts(Strict):
    """Collectives among a fixed number of workers."""

    workers: PositiveInt
    all_gather: LinearCost
    all_reduce: LinearCost
    source: str = Field("", description="where the fit comes from")

    @property
    def link(self) -> LinearCost:
        """One message between two workers, as the all-reduce implies it.

        A ring has 2(P-1) steps, in each of which a worker sends a P-th of its bytes to the next. Collectives that have
        no line of their own follow from this. Among fewer than two workers it costs nothing.
        """
        steps = 2 * (self.workers - 1)
        if not steps:
            return LinearCost(start=0, per_byte=0)
        line = self.all_reduce
        return LinearCost(start=line.start / steps, per_byte=line.per_byte * self.workers / steps)

    @property
    def bandwidth(self) -> float:
        """Of the link, in bit/s; infinite where bytes cost nothing."""
        return 8 / self.link.per_byte if self.link.per_byte else math.inf

    def at_bandwidth(self, bandwidth: float) -> "NetworkCosts":
        """The same network with links of so many bit/s: start-ups stay, bytes take as much longer or shorter.

        Raises:
            ValueError: bytes cost nothing on this network, so that there is nothing to scale.
        """
        if math.isinf(self.bandwidth):
            raise ValueError("a network on which bytes cost nothing has no bandwidth to change")
        factor = self.bandwidth / bandwidth
        lines = {
            name: line.model_copy(update={"per_byte": factor * line.per_byte})
            for name, line in (("all_gather", self.all_gather), ("all_reduce", self.all_reduce))
        }
        return self.model_copy(update=lines)


class LinkCosts(Strict):
    """A network of equal links, from which the collectives follow by the usual models.

    alpha is the latency of one message between two workers, and every step of a collective pays it once: an all-gather
    by recursive doubling has ceil(log2 P) steps and moves (P-1) times a worker's bytes, a ring all-reduce has 2(P-1)
    steps and moves 2(P-1)/P times its bytes. A fit of a whole collective has all its steps in its constant: divide by
    their number to get alpha, or give the fitted line itself as `all_gather` or `all_reduce`.
    """

    workers: PositiveInt
    alpha: NonNegativeFloat = Field(description="seconds of latency a step")
    bandwidth: PositiveFloat = Field(description="of each worker's link, in bit/s")
    source: str = ""

    def network(self) -> NetworkCosts:
        """The lines of both collectives."""
        workers, byte = self.workers, 8 / self.bandwidth
        steps = math.ceil(math.log2(workers))
        return NetworkCosts(
            workers=workers,
            all_gather=LinearCost(start=self.alpha * steps, per_byte=(workers - 1) * byte),
            all_reduce=LinearCost(start=2 * (workers - 1) * self.alpha, per_byte=2 * (workers - 1) / workers * byte),
            source=self.source or f"links of {self.bandwidth / 1e9:g} Gb/s with {self.alpha:g} s a step",
        )


class Costs(Strict):
    """Everything a prediction needs. The whole or a part may be given as the path of a YAML file that holds it.

    A path is read when the configuration is, so that a run folder's config.yaml holds the numbers themselves.
    """

    layers: LayerCosts
    network: NetworkCosts = Field(description="lines of the collectives, or workers, alpha and bandwidth of a link")

    @model_validator(mode="before")
    @classmethod
    def _whole_from_file(cls, value: Any) -> Any:
        return _read(value)

    @field_validator("layers", "network", mode="before")
    @classmethod
    def _part_from_file(cls, value: Any) -> Any:
        return _read(value)

    @field_validator("network", mode="before")
    @classmethod
    def _from_link(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() & {"alpha", "bandwidth"}:
            return LinkCosts.model_validate(value).network()
        return value


def _read(value: Any) -> Any:
    """What the YAML file at a path holds; anything but a path as it is."""
    if not isinstance(value, str):
        return value
    from suite.config.values import read_yaml  # reads settings models to word refusals, so comes after this

    return read_yaml(Path(value))

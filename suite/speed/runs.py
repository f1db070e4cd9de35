"""What an iteration of a profile's own experiments would take on a network of hosts, predicted.

The models that a small machine trains are not those whose times were published. Their layer times here are the
published seconds a multiply-accumulate of the most similar published model, times their own arithmetic: what a card
that computed them as efficiently would take. It would not quite, so computation is underestimated and the share of
communication overestimated (our choice; nobody published times of these models). An experiment that brings `costs` is
predicted with those as well.
"""

import math
from collections.abc import Iterator
from typing import Any

from suite.config import ExperimentConfig, validate_config
from suite.config.costs import Costs, LayerCosts, NetworkCosts
from suite.config.profiles import profile_cells
from suite.errors import ConfigError
from suite.speed.emulated import REFERENCE
from suite.speed.layers import arithmetic
from suite.speed.networks import read_networks
from suite.speed.predictions import Prediction, prediction
from suite.speed.published import PublishedModel, published_models
from suite.speed.subject import described_layout
from suite.timeline.spread import spread

NETWORKS = ("1gbe", "10gbe")
RUN_TIME_COLUMNS = (
    "experiment", "method", "network", "workers", "density", "bytes", "iteration_s", "compute_s", "hidden_share",
    "evidence", "source",
)  # fmt: skip


def run_time_rows(profile: str) -> Iterator[dict[str, Any]]:
    """run_times.csv: a row an experiment, method and network; times in seconds, bytes a worker puts on the wire.

    `compute_s` is the part that a batch twice as large doubles: forward and backward. A prediction that is refused has
    no numbers; its evidence is "refused" and its source the reason.
    """
    if profile == REFERENCE:
        return  # emulations of the published models, which belong to no experiment
    seen = set()
    for cell in profile_cells(profile):
        if (cell.experiment, cell.method) in seen:
            continue
        seen.add((cell.experiment, cell.method))
        config = validate_config(cell.config)
        if not getattr(config.data, "tells_accuracy", True):
            continue  # made for timings, which were measured
        for network, found, source in _predicted(config):
            where = (cell.experiment, cell.method, network, config.world.workers)
            if found is None:
                values = (*where, *[None] * 5, "refused", source)
            else:
                timeline = found.timeline
                compute = timeline.total("forward") + timeline.total("backward")
                values = (
                    *where, found.density, found.sent_bytes, timeline.iteration, compute, timeline.hidden_share,
                    "predicted", source,
                )  # fmt: skip
            yield dict(zip(RUN_TIME_COLUMNS, values, strict=True))


def _predicted(config: ExperimentConfig) -> Iterator[tuple[str, Prediction | None, str]]:
    """Network, iteration and whose layer times they are: the named networks, and the configuration's own.

    Where a named network's iteration cannot be predicted: None, and why not.
    """
    if config.costs is not None:
        network = config.costs.network
        yield f"{network.bandwidth / 1e9:g} Gb/s", _iteration(config, config.costs), config.costs.layers.source
    try:
        layers = scaled_layers(config, _like(config))
        networks: list[NetworkCosts] = [read_networks()[name].at(config.world.workers) for name in NETWORKS]
        found = [_iteration(config, Costs(layers=layers, network=network)) for network in networks]
    except ConfigError as error:
        yield from ((name, None, str(error)) for name in NETWORKS)
    else:
        yield from ((name, one, layers.source) for name, one in zip(NETWORKS, found, strict=True))


def _iteration(config: ExperimentConfig, costs: Costs) -> Prediction:
    from suite.methods import build_method

    layout = described_layout(config)
    method = build_method(config.method, costs)
    return prediction(method.label, method, layout, costs)


def _like(config: ExperimentConfig) -> PublishedModel:
    """The published model whose samples are most like the configuration's.

    Raises:
        ConfigError: nobody published times of a model for such data, or the method plans for a network of its own.
    """
    if config.method.needs_costs:
        raise ConfigError(
            f"method.{config.method.needs_costs} plans for the network in costs; predict this run with that one"
        )
    same_kind = [one for one in published_models().values() if one.times.model.kind == config.model.kind]
    side = getattr(config.data, "image_size", None)
    if not same_kind or (config.model.kind == "images" and side is None):
        raise ConfigError(
            f"no times of a model of {config.model.kind} are published here; set costs to layer times of your own"
        )
    if config.model.kind == "text":
        return same_kind[0]
    return min(same_kind, key=lambda one: (one.times.model.name != config.model.name, abs(one.times.input[-1] - side)))


def scaled_layers(config: ExperimentConfig, like: PublishedModel) -> LayerCosts:
    """Layer times of a configuration's model and batch at the published efficiency of another model.

    Forward and backward go by multiply-accumulates, selection by n log2 n of the whole gradient's n elements.
    """
    times, data = like.times, config.data
    theirs, their_sizes = arithmetic(times.model, times.input, times.classes)
    shape = (
        (data.channels, data.image_size, data.image_size) if config.model.kind == "images" else (data.sequence_length,)
    )
    ours, sizes = arithmetic(config.model, shape, data.classes)
    n, n_theirs = sum(sizes.values()), sum(their_sizes.values())
    factor = config.train.batch_size * sum(ours.values()) / (times.batch * sum(theirs.values()))
    effort = n * math.log2(n) / (n_theirs * math.log2(n_theirs))
    source = (
        f"{config.model.name} at the published efficiency of {like.name} on a {like.device.name}: {factor:.3g} of its "
        f"arithmetic, {effort:.3g} of its selection"
    )
    return spread(
        factor * times.forward, factor * times.backward, effort * times.lags.selection, ours, sizes, source,
        select_whole=effort * times.slgs.selection,
    )  # fmt: skip

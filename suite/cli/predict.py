"""`suite predict`: iterations of all methods over a range of networks."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from suite.cli.train import ConfigArgument, SetOption
from suite.config.costs import Costs, LayerCosts, LinkCosts, NetworkCosts


class Rule(StrEnum):
    """Readings of the paper's adaptive ratio; see suite.plan.adaptive."""

    later = "later"
    next = "next"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(predict)


def predict(
    config: ConfigArgument,
    set_: SetOption = None,
    bandwidth: Annotated[
        list[float] | None, typer.Option(help="Gb/s of every worker's link; repeatable.", show_default=False)
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Seconds of latency a step of a collective. [default: from --published]", show_default=False),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Take phase times and fits its authors published.", show_default=False),
    ] = None,
    select: Annotated[
        list[float] | None,
        typer.Option(
            help="Seconds that all selection takes, in place of what is known; repeatable.", show_default=False
        ),
    ] = None,
    rule: Annotated[Rule, typer.Option(help="Adaptive rule whose ratios to list.")] = Rule.later,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object, with the ratios of both rules.")] = False,
) -> None:
    """Predict the iterations of all methods, and the adaptive ratio of every layer, for CONFIG's model and workers.

    Layer times come from CONFIG's costs, or from published totals, spread over the layers by their arithmetic.

    Example:

    `suite predict replications/lags2019/resnet50.yaml --published ResNet-50 --bandwidth 1 --bandwidth 10
    --bandwidth 100 --select 0.1321 --select 0.004`
    """
    from suite.speed.predictions import READING, layout_of, predictions, print_rows
    from suite.config import load_config

    experiment = load_config(config, set_ or [])
    model, layout = layout_of(experiment)
    source = _published(published) if published else None
    layers = _published_layers(source, published, experiment, model, layout) if source else _own_layers(experiment)
    networks = _networks(experiment, bandwidth or [], alpha, source)
    rows, ratios = [], {}
    for seconds in select or [layers.select]:
        scaled = _with_selection(layers, seconds)
        for name, network in networks.items():
            key = {"network": name, "selection_s": seconds}
            for found in predictions(experiment, layout, Costs(layers=scaled, network=network)):
                rows.append(key | found.row())
                if found.rule:
                    kept = {segment.name: (segment.size, segment.k) for segment in found.plan.segments}
                    ratios[name, seconds, found.rule] = {layer: kept[layer] for layer in layout.names}
    if as_json:
        print(json.dumps({
            "model": experiment.model.name, "workers": experiment.world.workers, "layers": layers.source,
            "networks": {name: network.model_dump() for name, network in networks.items()},
            "predictions": rows, "ratios": _ratio_rows(ratios),
        }, indent=2))  # fmt: skip
        return
    for seconds in select or [layers.select]:
        shown = {name: ratios[name, seconds, rule] for name in networks}
        _print_ratios(shown, f"Adaptive ratio c(l) = d / k, rule {rule}, selection {1e3 * seconds:.1f} ms")
        for name in networks:
            of = [row for row in rows if (row["network"], row["selection_s"]) == (name, seconds)]
            print_rows(of, f"{name}, selection {1e3 * seconds:.1f} ms")
    print(f"{READING}. Layers: {layers.source}")


def _published(model: str):
    """The published numbers of the replication that has this model."""
    from suite.config.profiles import replication_folders
    from suite.config.strict import nearest
    from suite.errors import ConfigError
    from suite.speed.published import read_published

    paths = [folder / "published.yaml" for folder in replication_folders() if (folder / "published.yaml").exists()]
    found = [read_published(path) for path in paths]
    known = {name for one in found for name in one.iteration_times.models}
    if not known:
        raise ConfigError("there is no replications/*/published.yaml here; run from the root of the suite's checkout")
    if model not in known:
        raise ConfigError(f"nobody published times of '{model}'; {nearest(model, known)}")
    return next(one for one in found if model in one.iteration_times.models)


def _published_layers(source, name: str, experiment, model, layout) -> LayerCosts:
    """The published totals of a model, spread over CONFIG's model."""
    import torch

    from suite.data import ImageDataset, load_dataset
    from suite.measure.work import multiply_accumulates
    from suite.timeline.spread import spread

    times, dataset = source.iteration_times.models[name], load_dataset(experiment)
    if isinstance(dataset, ImageDataset):
        batch = (torch.empty(1, *dataset.train[0].shape[1:], device="meta"),)
    else:
        batch = (torch.zeros(1, dataset.sequence_length, dtype=torch.long, device="meta"), None)
    work = multiply_accumulates(model.eval(), *batch)
    text = (
        f"{name}, published totals (forward {times.forward:g} s, backward {times.backward:g} s, selection "
        f"{times.lags.selection:g} s) spread over the layers of {experiment.model.name}: backward by their "
        "multiply-accumulates, selection by n log2 n"
    )
    sizes = dict(zip(layout.names, layout.sizes, strict=True))
    return spread(times.forward, times.backward, times.lags.selection, work, sizes, text)


def _own_layers(experiment) -> LayerCosts:
    from suite.errors import ConfigError

    if experiment.costs is None:
        raise ConfigError(
            "there are no layer times to predict from; set costs in CONFIG (`suite measure layers`) or give --published"
        )
    return experiment.costs.layers


def _networks(experiment, bandwidths: list[float], alpha: float | None, source) -> dict[str, NetworkCosts]:
    """Networks by name: the links asked for, with the authors' fit beside published times; or else CONFIG's own."""
    from suite.errors import ConfigError

    workers, fits = experiment.world.workers, source.network_fits if source else None
    if alpha is None and fits:
        alpha = fits.all_reduce_10gbe.start / (2 * (fits.workers - 1))
    if alpha is None and bandwidths:
        raise ConfigError("a link of --bandwidth also needs its latency: give --alpha, in seconds a step")

    def link(gigabits: float) -> NetworkCosts:
        return LinkCosts(workers=workers, alpha=alpha, bandwidth=gigabits * 1e9).network()

    out = {f"{gigabits:g} Gb/s": link(gigabits) for gigabits in bandwidths}
    if fits and fits.workers == workers:
        out["1GbE, fitted"] = link(1).model_copy(update={"all_gather": fits.all_gather_1gbe})
    if not out and experiment.costs is not None:
        out["costs.network"] = experiment.costs.network
    if not out:
        raise ConfigError("there is no network to predict for; give --bandwidth, in Gb/s")
    return out


def _with_selection(layers: LayerCosts, seconds: float) -> LayerCosts:
    """The same layers with all selection scaled to a total."""
    factor = seconds / layers.select if layers.select else 0.0
    scaled = [layer.model_copy(update={"select": factor * layer.select}) for layer in layers.layers]
    return layers.model_copy(update={"layers": tuple(scaled)})


def _ratio_rows(ratios: dict[tuple, dict[str, tuple[int, int]]]) -> list[dict[str, Any]]:
    return [
        {"network": network, "selection_s": seconds, "rule": rule, "layer": name, "d": d, "k": k, "c": d / k}
        for (network, seconds, rule), layers in ratios.items()
        for name, (d, k) in layers.items()
    ]


def _print_ratios(columns: dict[str, dict[str, tuple[int, int]]], title: str) -> None:
    """c of every layer whose ratio depends on the network; d and k by network and layer."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("layer", no_wrap=True)
    for name in ("entries d", *columns):
        table.add_column(name, justify="right")
    left_out = 0
    for layer, (size, _) in next(iter(columns.values())).items():
        kept = [layers[layer][1] for layers in columns.values()]
        if len(columns) > 1 and len(set(kept)) == 1:
            left_out += 1
        else:
            table.add_row(layer, f"{size:,}", *(f"{size / k:.4g}" for k in kept))
    if table.row_count:
        Console().print(table)
    else:
        print(title)
    if left_out:
        print(f"{left_out} layers with the same ratio on all networks are left out")
    for name, layers in columns.items():
        ratios = sorted(d / k for d, k in layers.values())
        total, sent = sum(d for d, _ in layers.values()), sum(k for _, k in layers.values())
        print(
            f"{name}: c from {ratios[0]:.4g} to {ratios[-1]:.4g}, median {ratios[len(ratios) // 2]:.4g}; "
            f"{sum(c == 1 for c in ratios)} of {len(ratios)} layers at 1; {sent / total:.2%} of all entries are sent"
        )

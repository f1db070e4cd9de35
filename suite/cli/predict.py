"""`suite predict`: iterations of all methods over a range of networks."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.cli.train import DataRootOption, SetOption
from suite.config.costs import NetworkCosts

SubjectArgument = Annotated[
    str,
    typer.Argument(
        help="A published model (ResNet-50, Inception-v4, VGG-16, LSTM-PTB), a YAML file of layer times or of a "
        "configuration with costs, or the address of a cell."
    ),
]
NetworkOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A named network (replications/*/networks.yaml) or a file that `suite measure network` wrote; repeatable.",
        show_default=False,
    ),
]
AlphaOption = Annotated[
    float | None,
    typer.Option(help="Seconds of latency a step of a collective. [default: as on 1gbe]", show_default=False),
]


class Rule(StrEnum):
    """Readings of the paper's adaptive ratio; see suite.plan.adaptive."""

    later = "later"
    next = "next"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(predict)


def predict(
    subject: SubjectArgument,
    set_: SetOption = None,
    network: NetworkOption = None,
    bandwidth: Annotated[
        list[float] | None, typer.Option(help="Gb/s of every worker's link; repeatable.", show_default=False)
    ] = None,
    alpha: AlphaOption = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="P, the number of workers. [default: the configuration's, or 16]", show_default=False),
    ] = None,
    select: Annotated[
        list[float] | None,
        typer.Option(
            help="Seconds that all selection takes, in place of what is known; repeatable.", show_default=False
        ),
    ] = None,
    select_ours: Annotated[
        bool,
        typer.Option(
            "--select-ours",
            help="Also with this suite's selection: measured here in copies of memory, which are then taken to last as "
            "long as the published device's memory needs for them.",
        ),
    ] = False,
    rule: Annotated[Rule, typer.Option(help="Adaptive rule whose ratios to list.")] = Rule.later,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object, with the ratios of both rules.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the predicted timelines to this file (.svg, .png).", show_default=False)
    ] = None,
    data_root: DataRootOption = None,
) -> None:
    """Predict the iterations of all methods, and the adaptive ratio of every layer, of SUBJECT on networks.

    Without --network or --bandwidth it takes the configuration's own costs, or all named networks.

    Example:

    `suite predict ResNet-50 --network 1gbe --network 10gbe --select 0.1321 --select 0.004`
    """
    from suite.speed.paper import PLANS
    from suite.speed.predictions import predictions
    from suite.speed.subject import read_subject

    found = read_subject(subject, set_ or [])
    networks = networks_for(found, network or [], bandwidth or [], alpha, workers or found.workers)
    cases = [found.with_selection(seconds) for seconds in select or ()] or [found]
    if select_ours:
        cases.append(found.with_our_selection(measured_copies()))
    rows, ratios, timelines = [], {}, {}
    for case in cases:
        for name, costs in networks.items():
            key = {"network": name, "selection_s": case.layers.select}
            for row in predictions(case, costs):
                rows.append(key | row.row())
                if row.title in PLANS.values():
                    timelines[f"{name}, selection {_ms(case.layers.select)}, {row.title}"] = row.timeline
                if row.rule:
                    kept = {segment.name: (segment.size, segment.k) for segment in row.plan.segments}
                    ratios[(*key.values(), row.rule)] = {layer: kept[layer] for layer in case.layout.names}
    if as_json:
        print(json.dumps({
            "subject": found.name, "workers": workers or found.workers, "layers": found.layers.source,
            "networks": {name: costs.model_dump() for name, costs in networks.items()},
            "predictions": rows, "ratios": _ratio_rows(ratios),
        }, indent=2))  # fmt: skip
    else:
        for seconds in [case.layers.select for case in cases]:
            shown = {name: ratios[name, seconds, rule] for name in networks}
            print_ratios(shown, f"Adaptive ratio c(l) = d / k, rule {rule}, selection {_ms(seconds)}")
            for name in networks:
                of = [row for row in rows if (row["network"], row["selection_s"]) == (name, seconds)]
                print_rows(of, f"{name}, selection {_ms(seconds)}")
        print(f"{READING}. Layers: {found.layers.source}")
    if figure is not None:
        from suite.timeline.draw import draw_timelines

        draw_timelines(figure, timelines)
        if not as_json:
            print(f"wrote {figure}")


def networks_for(
    subject, names: Sequence[str], bandwidths: Sequence[float], alpha: float | None, workers: int
) -> dict[str, NetworkCosts]:
    """The networks asked for, by name; without any the subject's own, or all named ones among so many workers."""
    from suite.errors import ConfigError
    from suite.speed.networks import link_at, network_at, read_networks

    if alpha is not None and not bandwidths:
        raise ConfigError("--alpha belongs to a link of --bandwidth; give --bandwidth, in Gb/s, or leave it out")
    if any(not gigabits > 0 for gigabits in bandwidths) or (alpha is not None and not alpha >= 0):
        raise ConfigError("--bandwidth must be above 0, in Gb/s, and --alpha at least 0, in seconds")
    out = {name: network_at(name, workers) for name in names}
    out |= {f"{gigabits:g} Gb/s": link_at(gigabits, workers, alpha) for gigabits in bandwidths}
    if out:
        return out
    if subject.network is not None:
        if subject.network.workers != workers:
            raise ConfigError(
                f"the configuration's network is of {subject.network.workers} workers, not of {workers}; "
                "give --network or --bandwidth as well"
            )
        return {"costs.network": subject.network}
    out = {name: network.at(workers) for name, network in read_networks().items() if network.serves(workers)}
    if not out:
        raise ConfigError("there is no network to predict for; give --network, or --bandwidth in Gb/s")
    return out


def measured_copies(repeats: int = 5) -> float:
    """How many copies of a vector its selection takes on this machine; `suite bench select` with few repeats."""
    from suite.bench.select import RESNET50, bench_select

    return bench_select(RESNET50, 0.001, repeats)["fused_ratio_to_copy"]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"


def _ratio_rows(ratios: dict[tuple, dict[str, tuple[int, int]]]) -> list[dict[str, Any]]:
    return [
        {"network": network, "selection_s": seconds, "rule": rule, "layer": name, "d": d, "k": k, "c": d / k}
        for (network, seconds, rule), layers in ratios.items()
        for name, (d, k) in layers.items()
    ]


def print_ratios(columns: dict[str, dict[str, tuple[int, int]]], title: str) -> None:
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


def print_rows(rows: Sequence[dict[str, Any]], title: str) -> None:
    """Predicted iterations as a table that fits 80 columns, in milliseconds."""
    from rich.console import Console
    from rich.table import Table

    times = ", ".join(f"{phase} {1e3 * rows[0][f'{phase}_s']:.1f} ms" for phase in ("forward", "backward"))
    table = Table(title=f"{title}: {times}", title_justify="left", box=None, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    for name in ("msgs", "MB", "select", "exchange", "hidden", "exposed", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        select, exchange, exposed, total = (
            f"{1e3 * row[f'{name}_s']:.1f}" for name in ("select", "exchange", "exposed", "iteration")
        )
        size, hidden = f"{row['bytes'] / 1e6:.3f}", f"{row['hidden_share']:.0%}"
        table.add_row(row["plan"], str(row["messages"]), size, select, exchange, hidden, exposed, total)
    print()
    Console().print(table)


READING = (
    "Milliseconds of one iteration of a worker on a device of its own, without the update; MB: what one worker hands "
    "to the collectives; hidden, exposed: share and time of the exchange inside and outside of back-propagation"
)

"""`suite plan`: what a configuration sends when, and what an iteration is predicted to take."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.cli.train import ConfigArgument, DataRootOption, SetOption
from suite.config.costs import HOW_TO_GET_COSTS


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(plan)


def plan(
    config: ConfigArgument,
    set_: SetOption = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the predicted timeline to this file (.svg, .png).", show_default=False)
    ] = None,
    compare_merging: Annotated[
        bool, typer.Option("--compare-merging", help="Also compare MG-WFBP's rule with the optimum on random networks.")
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="CONFIG is a profile: estimate iterations, hours and disk of all it trains."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
    data_root: DataRootOption = None,
) -> None:
    """Show what one worker sends in an iteration of CONFIG: segments, k, messages, bytes.

    With `costs` in CONFIG also when: the predicted iteration, beside those of the other methods under the same costs.

    Examples:

    `suite plan laptop/digits/lags/0` shows every segment of LAGS-SGD on ResNet-20.

    `suite plan --estimate cifar-cpu` adds up what a whole profile takes.
    """
    if estimate:
        return _estimate(config, as_json)
    from suite.config import load_config
    from suite.errors import ConfigError
    from suite.methods import build_method
    from suite.plan import compare_on_random
    from suite.speed.predictions import prediction, predictions
    from suite.speed.subject import Subject, layout_of

    experiment = load_config(config, set_ or [])
    if figure is not None and experiment.costs is None:
        raise ConfigError(f"--figure draws a prediction, which needs costs; {HOW_TO_GET_COSTS}")
    layout = layout_of(experiment)
    method = build_method(experiment.method, experiment.costs)
    chosen = method.plan(layout, epoch=len(getattr(experiment.method, "density_warmup", ())))
    compared = compare_on_random(len(layout.names)) if compare_merging else None
    rows = []
    if experiment.costs is not None:
        own = prediction("this configuration", method, layout, experiment.costs)
        subject = Subject(config, layout, experiment.costs.layers, experiment.method)
        rows = [own, *predictions(subject, experiment.costs.network)]
    if as_json:
        print(json.dumps(_as_object(experiment, method, chosen, rows, compared), indent=2))
    else:
        _print(experiment, method, layout, chosen, rows, compared)
    if figure is not None:
        from suite.timeline.draw import draw_timelines

        wanted = ("this configuration", "SLGS", "dense, layer-wise")
        draw_timelines(figure, {row.title: row.timeline for row in rows if row.title in wanted})
        if not as_json:
            print(f"wrote {figure}")


_NETWORK = "10gbe"  # of the estimates


def _estimate(profile: str, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    from suite.speed.estimate import estimate
    from suite.words import amount_of_bytes, number

    rows = list(estimate(profile, _NETWORK))
    if as_json:
        print(json.dumps({"profile": profile, "network": _NETWORK, "rows": rows}, indent=2))
        return
    table = Table("experiment", "method", "seeds", "ranks", "iterations", "hours a run", "rank hours", "disk",
                  title=f"Profile {profile}, hours on the authors' cards")  # fmt: skip
    for row in rows:
        counts = [str(row["seeds"]), str(row["ranks"]), f"{row['iterations']:,}"]
        times = [number(row["hours"], 2), number(row["rank_hours"], 2)]
        table.add_row(row["experiment"], row["method"], *counts, *times, amount_of_bytes(row["bytes"]))
    Console(width=120).print(table)
    hours = sum(row["rank_hours"] or 0 for row in rows)
    print(f"in all {number(hours, 2)} rank hours and {amount_of_bytes(sum(row['bytes'] for row in rows))}; ", end="")
    print("hours are predicted for the authors' cards on 10 Gb/s Ethernet, without loading and evaluation")


def _bytes_on_the_wire(experiment, method, plan) -> tuple[float, str]:
    """What one worker sends an iteration, and by which collectives."""
    handed_in = sum(method.handed_in(message) for message in plan.messages)
    how = f"{method.collective_name(plan.is_sparse)}, {handed_in / plan.entries:.3g} bytes an entry"
    return method.traffic(experiment.world.workers, plan.is_sparse) * handed_in, how


def _print(experiment, method, layout, plan, rows, compared) -> None:
    from rich.console import Console
    from rich.table import Table

    from suite.cli.predict import READING, print_rows

    table = Table(
        "message", "segment", "entries d", "sent k", "ratio c", title=f"{experiment.method.name}: one iteration"
    )
    for number, message in enumerate(plan.messages):
        for segment in message.segments:
            sent, ratio = f"{segment.sent:,}", f"{segment.size / segment.sent:.4g}"
            table.add_row(str(number), segment.name, f"{segment.size:,}", sent, ratio)
    Console().print(table)
    sent, how = _bytes_on_the_wire(experiment, method, plan)
    print(f"{len(plan.messages)} messages, {plan.entries:,} of {layout.size:,} entries;")
    print(f"one of {experiment.world.workers} workers puts {sent / 1e6:.3f} MB on the wire ({how})")
    if rows:
        print_rows([row.row() for row in rows], "Predicted iterations")
        print(f"{READING}. Layers: {experiment.costs.layers.source or 'of unnamed source'}. ", end="")
        print(f"Network: {experiment.costs.network.source or 'of unnamed source'}")
    else:
        if method.merges_by_costs:
            print("a run merges these messages by costs that it measures in its first iterations")
        print(f"no costs, so no times: {HOW_TO_GET_COSTS}")
    if compared is not None:
        print(
            f"MG-WFBP's rule finds the optimum on {compared['optimal_share']:.0%} of {compared['instances']} random "
            f"networks of {len(layout.names)} layers; backward and exchange take {compared['mean_gap']:.1%} longer on "
            f"average, {compared['largest_gap']:.0%} at most"
        )


def _as_object(experiment, method, plan, rows, compared) -> dict[str, Any]:
    messages = [[{"segment": s.name, "d": s.size, "k": s.sent} for s in message.segments] for message in plan.messages]
    out = {"method": experiment.method.name, "workers": experiment.world.workers, "messages": messages}
    out |= {"entries": plan.entries, "bytes_sent": _bytes_on_the_wire(experiment, method, plan)[0]}
    out["predictions"] = [row.row() for row in rows]
    return out if compared is None else out | {"merging_on_random_networks": compared}

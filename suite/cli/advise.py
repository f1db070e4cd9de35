"""`suite advise`: would sparsification make this training faster?"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from suite.cli.measure import OutOption, batch_progress, measure_layers_of, write_costs
from suite.cli.predict import AlphaOption, networks_for
from suite.cli.train import DataRootOption, SetOption


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(advise)


def advise(
    subject: Annotated[
        str,
        typer.Argument(
            help="Your model, as package.module:function that returns (module, batch) or (module, batch, loss); a "
            "published model; a YAML file of layer times or of a configuration; or the address of a cell."
        ),
    ],
    set_: SetOption = None,
    network: Annotated[
        str | None,
        typer.Option(help="A named network or a file that `suite measure network` wrote.", show_default=False),
    ] = None,
    bandwidth: Annotated[float | None, typer.Option(help="Gb/s of every worker's link.", show_default=False)] = None,
    alpha: AlphaOption = None,
    measure_network: Annotated[
        bool, typer.Option("--measure-network", help="Measure the collectives of --workers ranks on this machine.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="P, the number of workers. [default: the configuration's, or 16]", show_default=False),
    ] = None,
    batches: Annotated[int, typer.Option(min=1, help="Batches to take the medians of, where layers are timed.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw iteration times over bandwidth to this file (.svg, .png).", show_default=False),
    ] = None,
    out: OutOption = None,
    data_root: DataRootOption = None,
) -> None:
    """Say which method makes SUBJECT's iterations shortest on a network, and on which networks another one would.

    Layers are timed here unless SUBJECT has times; --out keeps them. Everything about the network is predicted.

    Examples:

    `suite advise ResNet-50 --network 10gbe`

    `suite advise my_project.training:example --bandwidth 25 --workers 8 --out layers.yaml --figure advice.svg`
    """
    from suite.errors import ConfigError
    from suite.speed.advice import advise as advise_on
    from suite.speed.networks import read_network
    from suite.speed.subject import is_import_path, lacks_times, read_subject

    if workers is not None and workers < 2:
        raise ConfigError(f"advice needs at least 2 workers, not {workers}; one worker exchanges nothing")
    ways = [network is not None, bandwidth is not None, measure_network]
    if sum(ways) > 1:
        raise ConfigError("the network is said in several ways; give one of --network, --bandwidth, --measure-network")
    if measure_network and workers is None:
        raise ConfigError("--measure-network starts a rank a worker on this machine; say how many with --workers")
    if alpha is not None and bandwidth is None:
        raise ConfigError("--alpha belongs to a link of --bandwidth; give --bandwidth, in Gb/s, or leave it out")
    if network is not None and not Path(network).is_file():
        read_network(network)  # before anything is timed
    measures = is_import_path(subject) or lacks_times(subject, set_ or [])
    if out is not None and not measures:
        raise ConfigError(f"--out keeps times that are measured here, and those of {subject} are not; leave it out")
    found = None if measures else read_subject(subject, set_ or [])
    if not any(ways) and (found is None or found.network is None):
        raise ConfigError("say on which network: --network 10gbe, --bandwidth 10 (in Gb/s) or --measure-network")
    if found is None:
        found = _measured(subject, set_ or [], batches)
        write_costs(out, found.layers, quiet=as_json)
    if measure_network:
        costs = _measured_network(workers)
    else:
        names, gigabits = [network] if network else [], [bandwidth] if bandwidth is not None else []
        (costs,) = networks_for(found, names, gigabits, alpha, workers or found.workers).values()
    advice = advise_on(found, costs)
    print(json.dumps(advice.to_dict(), indent=2)) if as_json else _print(advice)
    if figure is not None:
        from suite.speed.draw import draw_advice

        draw_advice(figure, advice)
        if not as_json:
            print(f"wrote {figure}")


def _measured(text: str, overrides: list[str], batches: int):
    """SUBJECT with times that are measured here: of a model of one's own, or of a configuration."""
    from suite.speed.subject import as_subject, is_import_path

    if not is_import_path(text):
        layers, experiment = measure_layers_of(text, overrides, batches)
        found = as_subject(text, layers.model_dump(), (), experiment.method.density)
        return replace(found, workers=experiment.world.workers)
    # Wrong overrides are refused before anything is timed.
    nothing = {"forward": 0.0, "layers": [{"name": "none", "size": 1, "backward": 0.0}]}
    density = as_subject(text, nothing, overrides).density
    from suite.measure.own import measure_own

    layers = measure_own(text, density, batches, batch_progress)
    return as_subject(text, layers.model_dump(), overrides)


def _measured_network(workers: int):
    from suite.config.load import validate_config
    from suite.measure.network import measure_network
    from suite.world.check import check_machine

    world = {"workers": workers, "processes": workers, "transport": "horovod"}
    experiment = validate_config({"method": "dense", "world": world})
    check_machine(experiment.world)
    return measure_network(experiment.world).costs()


def _print(advice) -> None:
    from rich.console import Console
    from rich.table import Table

    from suite.speed.advice import MARGIN
    from suite.words import amount_of_bytes

    subject, network = advice.subject, advice.network
    times = f"forward {1e3 * subject.layers.forward:.1f} ms, backward {1e3 * subject.layers.backward:.1f} ms"
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for name in ("msgs", "sent", "select", "exchange", "exposed", "total", "x dense"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in advice.rows():
        select, exchange, exposed, total = (
            f"{1e3 * row[f'{name}_s']:.1f}" for name in ("select", "exchange", "exposed", "iteration")
        )
        sent = amount_of_bytes(row["sent_bytes"])
        table.add_row(
            row["plan"], str(row["messages"]), sent, select, exchange, exposed, total, f"{row['speed_up']:.2f}"
        )
    print(f"{subject.name}, {network.workers} workers, density {subject.density:g}: {times}")
    Console().print(table)
    print(
        "Milliseconds of one iteration as predicted; sent: by one worker; exposed: exchange outside of "
        "back-propagation; x dense: times as fast as dense. "
        f"Of methods within {MARGIN:.0%} of each other the simpler one counts as best."
    )
    print(f"Layers: {subject.layers.source or 'of unnamed source'}. Network: {network.source or 'of unnamed source'}")
    print()
    print(advice.sentence[0].upper() + advice.sentence[1:] + ".")

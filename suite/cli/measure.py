"""`suite measure layers|published|network`: times from which plans and predictions are made."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from suite.cli.train import ConfigArgument, DataRootOption, SetOption

measure = typer.Typer(help="Time layers and network, for plans that adapt or merge and for predictions.")
OutOption = Annotated[Path | None, typer.Option("--out", help="YAML file to write the times to.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(measure, name="measure", no_args_is_help=True)


@measure.command("layers")
def layers(
    config: ConfigArgument,
    set_: SetOption = None,
    out: OutOption = None,
    batches: Annotated[int, typer.Option(min=1, help="Batches to take the medians of.")] = 20,
    data_root: DataRootOption = None,
) -> None:
    """Time forward, backward and selection of one worker's batch of CONFIG here, tensor by tensor.

    Of CONFIG's method only the density counts (0.001 where it has none). The file goes into `costs.layers`.

    Example: `suite measure layers laptop/digits/lags/0 --out layers.yaml`
    """
    from rich.console import Console
    from rich.table import Table

    costs, _ = measure_layers_of(config, set_ or [], batches)
    table = Table("tensor", "backward, ms", "selection, ms", title=costs.source)
    for layer in costs.layers:
        table.add_row(layer.name, f"{1e3 * layer.backward:.3f}", f"{1e3 * layer.select:.3f}")
    Console().print(table)
    print(f"forward {1e3 * costs.forward:.2f} ms, backward {1e3 * costs.backward:.2f}, select {1e3 * costs.select:.2f}")
    write_costs(out, costs)


def measure_layers_of(config: str, overrides: list[str], batches: int):
    """Times of a configuration's model and batch on this device, and the configuration, with SLGS at its density."""
    import torch

    from suite.config.load import read_config, validate_config
    from suite.data import load_dataset
    from suite.measure.layers import measure_layers
    from suite.models import build_model
    from suite.train.memory import keep_freed_memory
    from suite.train.tasks import build_task
    from suite.world import Worker
    from suite.world.worker import FlatParameters
    from suite.world.world import choose_device

    values = read_config(config, overrides)
    # A method that adapts to costs cannot be built before they are measured, and times hardly depend on the method.
    density = _density(values.get("method"))
    experiment = validate_config(values | {"method": {"name": "slgs", "density": density}, "costs": None})
    torch.set_num_threads(experiment.world.threads)
    keep_freed_memory()  # as training does
    device = choose_device(1, 0)
    dataset = load_dataset(experiment).to(device)
    flat = FlatParameters(build_model(experiment, dataset).to(device))
    worker = Worker(0, experiment.train.seed, flat, with_residual=True)
    task = build_task(dataset, experiment)
    task.start_epoch(0, [worker])
    batch = experiment.train.batch_size
    an_epoch = dataset.iterations(experiment.world.workers, batch)
    model, data = experiment.model.name, experiment.data.name
    source = (
        f"suite measure layers: {model} on {data}, batch {batch}, {experiment.world.threads} threads on {device.type}, "
        f"density {density:g}, medians of {batches} batches"
    )

    @contextmanager
    def loss(number: int) -> Iterator[torch.Tensor]:
        with worker.computing() as model:
            yield task.loss(model, worker, number % an_epoch)

    parameters = dict(zip(flat.names, flat.parameters, strict=True))
    costs = measure_layers(parameters, worker, loss, density, batches, source, batch_progress)
    return costs, experiment


def batch_progress(batches: range) -> Iterable[int]:
    """The numbers of the batches, with a bar where a person is watching."""
    from rich.console import Console
    from rich.progress import track

    from suite.train.progress import on_terminal

    console = Console(stderr=True)
    return track(batches, "measuring", console=console, transient=True) if on_terminal() else batches


def _density(method: object) -> float:
    given = method.get("density") if isinstance(method, dict) else None
    return given if isinstance(given, float) else 0.001


@measure.command("published")
def published(
    model: Annotated[str, typer.Argument(help="A model with published times, such as ResNet-50.")],
    out: OutOption = None,
) -> None:
    """Spread the published times of MODEL over its layers, by their shapes: how replications/*/layers are made.

    Nothing is timed. Backward goes by the layers' multiply-accumulates, selection by n log2 n.

    Example: `suite measure published VGG-16 --out vgg-16.yaml`
    """
    from suite.speed.layers import spread_over_layers
    from suite.speed.published import published_model

    found = published_model(model)
    costs = spread_over_layers(found.name, found.times)
    print(f"{len(costs.layers)} layers, {sum(layer.size for layer in costs.layers):,} parameters: {costs.source}")
    write_costs(out, costs)


@measure.command("network")
def network(
    config: Annotated[
        str | None, typer.Argument(help="A configuration whose world to measure.", show_default=False)
    ] = None,
    set_: SetOption = None,
    workers: Annotated[int | None, typer.Option(help="P, workers.", show_default=False)] = None,
    processes: Annotated[int | None, typer.Option(help="N, processes. [default: workers]", show_default=False)] = None,
    transport: Annotated[str | None, typer.Option(help="horovod, torch or virtual.", show_default=False)] = None,
    controller: Annotated[str | None, typer.Option(help="Horovod's: gloo or mpi.", show_default=False)] = None,
    largest: Annotated[int, typer.Option(min=65536, help="Bytes a worker contributes at most.")] = 64 * 2**20,
    out: OutOption = None,
) -> None:
    """Time all-gather and all-reduce from 1 KB to 64 MB in a world on this machine and fit start + bytes * slope.

    Options override CONFIG's world; without CONFIG it is 4 workers on 4 Horovod processes. The file goes into
    `costs.network`.

    Example: `suite measure network --processes 4 --transport torch --out network.yaml`
    """
    from rich.console import Console
    from rich.table import Table

    from suite.config.load import read_config, validate_config
    from suite.measure.network import measure_network
    from suite.world.check import check_machine

    default = {"workers": workers or 4, "processes": workers or 4, "transport": "horovod"}
    world = default if config is None else read_config(config, set_ or []).get("world", {})
    given = {"workers": workers, "processes": processes, "transport": transport, "controller": controller}
    world = world | {key: value for key, value in given.items() if value is not None}
    experiment = validate_config({"method": "dense", "world": world})
    check_machine(experiment.world)
    found = measure_network(experiment.world, largest)
    table = Table("bytes a worker", *(f"{name}, ms" for name in found.seconds), title="slowest rank, medians")
    for row in zip(found.sizes, *found.seconds.values(), strict=True):
        table.add_row(f"{row[0]:,}", *(f"{1e3 * seconds:.3f}" for seconds in row[1:]))
    Console().print(table)
    for name, line in found.lines.items():
        start, slope = (
            (f"{1e6 * v:.1f}" for v in line.start_interval),
            (f"{1e9 * v:.3f}" for v in line.per_byte_interval),
        )
        print(
            f"{name}: {1e6 * line.start:.1f} us [{', '.join(start)}] + {1e9 * line.per_byte:.3f} ns a byte "
            f"[{', '.join(slope)}], 95% intervals{'; start clipped at 0' if line.clipped else ''}; "
            f"worst point off by {line.deviation:.0%}"
        )
    write_costs(out, found.costs())


def write_costs(out: Path | None, costs, quiet: bool = False) -> None:
    """Write costs as YAML, and say so; nothing without a path."""
    import yaml

    from suite.record.atomic import write_text

    if out is not None:
        values = costs.model_dump(mode="json", exclude_none=True)
        # Without a default style, what nests nothing takes one line: a layer, or a line of a fit.
        write_text(out, yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=200))
        if not quiet:
            print(f"wrote {out}")

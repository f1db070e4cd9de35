"""`suite emulate`: iteration times of many hosts, on this one."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.cli.predict import measured_copies
from suite.cli.train import SetOption


class Selection(StrEnum):
    """Where the time of selection comes from."""

    given = "given"
    ours = "ours"
    measured = "measured"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(emulate)


def emulate(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUBJECT...",
            help="Published models (ResNet-50) or files of layer times (`suite measure layers --out`).",
            show_default=False,
        ),
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option(help="1gbe, 10gbe, ... or Gb/s; repeatable. [default: 1gbe]", show_default=False)
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="dense, slgs, lags; repeatable. [default: all three]", show_default=False),
    ] = None,
    workers: Annotated[
        list[int] | None,
        typer.Option(help="Hosts, with one worker each; repeatable. [default: 16]", show_default=False),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations that count; one more comes first.")] = 4,
    stretch: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="How many times as slowly as on the emulated hosts everything happens, so that this machine keeps up. "
            "[default: by method, network and workers]",
            show_default=False,
        ),
    ] = None,
    selection: Annotated[
        Selection,
        typer.Option(
            help="given: as long as the layer times say; ours: as long as ours would take on their device; measured: "
            "done in earnest here."
        ),
    ] = Selection.given,
    copies: Annotated[
        float | None,
        typer.Option(help="What ours takes, in copies of the gradient. [default: measured now]", show_default=False),
    ] = None,
    set_: SetOption = None,
    profile: Annotated[
        str | None,
        typer.Option(help="Emulate what emulations.yaml lists for a profile, into its results.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the records. [default: results/emulated]", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be emulated, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summaries as one object.")] = False,
) -> None:
    """Emulate a cluster on this machine: real Horovod traffic on links of a given rate, computation slept.

    Every host is a network namespace with a process in it. It sleeps through forward, backward and, unless --selection
    says otherwise, selection, and exchanges what a training run would, by the same code. Everything happens `stretch`
    times as slowly as on the emulated hosts. Finished cells are kept: the same command continues. Takes root, or a
    system that lets everybody make user namespaces.

    Examples:

    `suite emulate ResNet-50 --network 1gbe --workers 16`

    `suite emulate my-layers.yaml --network 2.5 --workers 8 --method lags --set method.density=0.01`
    """
    from suite.emulate.grid import emulations
    from suite.emulate.record import is_done, read_summary
    from suite.emulate.session import run
    from suite.errors import ConfigError

    if bool(profile) == bool(subjects):
        raise ConfigError("name what to emulate: SUBJECT..., such as ResNet-50, or --profile")
    if profile:
        cells, root = emulations(profile), out or Path("results") / profile / "emulated"
        if not cells:
            raise ConfigError(f"replications/*/emulations.yaml lists nothing for profile '{profile}'")
    else:
        if selection is Selection.ours and copies is None:
            copies = measured_copies()
        cells = _cells(
            models=subjects, networks=network, methods=method, workers=workers, iterations=iterations, stretch=stretch,
            selection=selection, copies=copies, overrides=set_ or [],
        )  # fmt: skip
        root = out or Path("results/emulated")
    missing = [cell for cell in cells if not is_done(root, cell)]
    if dry_run:
        for cell in cells:
            state = "would emulate" if cell in missing else "is done"
            print(f"{state}: {cell.title}, {cell.iterations} iterations at stretch {cell.stretch:g}")
        return
    if missing:
        run(missing, root, root.parent / "logs" / "emulate")
    found = [summary for cell in cells if (summary := read_summary(root / cell.folder)) is not None]
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print(found, root)


def _cells(overrides: list[str], **values: Any) -> list:
    from pydantic import ValidationError

    from suite.config.values import sentence
    from suite.emulate.grid import EmulationSpec, expand
    from suite.errors import ConfigError

    given = {"networks": ["1gbe"]} | {key: value for key, value in values.items() if value}
    try:
        return expand(EmulationSpec.model_validate(given), overrides)
    except ValidationError as error:
        raise ConfigError(sentence(error)) from error


def _print(summaries: list[dict[str, Any]], root: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("emulated", no_wrap=True)
    for name in ("ms", "predicted", "computing", "hidden", "stretch", "busy"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in summaries:
        times = (f"{1e3 * one[key]:.1f}" for key in ("iteration_s", "predicted_s", "bound_s"))
        cell = f"{one['model']} {one['name']} {one['network']} P={one['workers']}"
        table.add_row(cell, *times, f"{one['hidden_share']:.0%}", f"{one['stretch']:g}", f"{one['cpu_busy']:.0%}")
    Console().print(table)
    print(
        "ms: an iteration of the slowest host until the last message is there, median; computing: forward, backward "
        "and selection; hidden: share of the exchange that back-propagation covers; busy: this machine's cores, while "
        "messages travel"
    )
    print(f"records: {root}")

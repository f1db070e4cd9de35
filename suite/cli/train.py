"""`suite train`: one training run, in this process or in ranks it starts."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from suite.errors import Interrupted

ConfigArgument = Annotated[
    str, typer.Argument(help="A YAML file, or the address PROFILE/EXPERIMENT/METHOD/SEED of a cell of a replication.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="A.B=C",
        help="Override a setting, such as method.density=0.01; repeatable.",
        show_default=False,
    ),
]


def _name_data_root(folder: Path | None) -> Path | None:
    if folder is not None:
        from suite.data.files import name_data_root

        name_data_root(folder)
    return folder


# Of every command that loads data; its callback does all there is to do.
DataRootOption = Annotated[
    Path | None,
    typer.Option(
        "--data-root",
        metavar="DIR",
        help="Folder that holds CIFAR-10, Penn Treebank or ImageNet. [default: the variable SUITE_DATA]",
        show_default=False,
        callback=_name_data_root,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("train")(train)
    app.command("rank", hidden=True)(rank)


def train(
    config: ConfigArgument,
    set_: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Run folder. [default: results/runs/NAME, after CONFIG]", show_default=False),
    ] = None,
    restart_if_changed: Annotated[
        bool, typer.Option("--restart-if-changed", help="Begin anew when the folder holds a run with other settings.")
    ] = False,
    data_root: DataRootOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Validate, say what would run, and stop.")] = False,
) -> None:
    """Train one configuration; an interrupted run continues from its checkpoint.

    Examples:

    `suite train laptop/digits/lags/0` repeats one cell of the laptop profile.

    `suite train my.yaml --set method.density=0.01 --set world.transport=horovod --set world.processes=4`
    """
    from suite.config import load_config
    from suite.record import RunFolder
    from suite.train.check import check_inputs
    from suite.world.check import check_machine

    experiment = load_config(config, set_ or [])
    check_machine(experiment.world)
    check_inputs(experiment)
    world = experiment.world
    folder = RunFolder(out or Path("results/runs") / config.removesuffix(".yaml").removesuffix(".yml").strip("/"))
    placement = (
        f"{world.workers} workers on {world.processes} process{'es' * (world.processes > 1)} ({world.transport})"
    )
    if dry_run:
        folder.check(experiment, restart_if_changed)
        print(f"would train {experiment.method.name} on {experiment.data.name} with {placement} in {folder.path}")
        return
    if not folder.claim(experiment, restart_if_changed):
        print(f"{folder.path} is complete: nothing to do")
        return
    try:
        if world.processes == 1 and world.transport == "virtual":
            run_here(folder)
        else:
            from suite.world.launch import launch

            launch(world, [sys.executable, "-m", "suite", "rank", str(folder.path)], folder.logs)
    except BaseException as error:
        folder.record_failure(error)
        raise


def rank(path: Path) -> None:
    """One rank of a run whose folder `suite train` has claimed."""
    from suite.record import RunFolder
    from suite.world.ranks import end_with_launcher

    end_with_launcher()
    signal.signal(signal.SIGTERM, _stop_early)
    run_here(RunFolder(path))
    sys.stdout.flush()
    # Horovod's and NCCL's background threads may wait for partners at interpreter exit; everything is written.
    os._exit(0)


def _stop_early(number: int, frame: FrameType | None) -> None:
    """A signal before training has begun, and with it the trainer's own way to stop."""
    raise Interrupted(f"stopped by signal before it trained; {Interrupted.promise}", number)


def run_here(folder) -> None:
    """Train in this process as the member of the world it was started as."""
    from suite.config import load_config
    from suite.train.loop import train as train_run
    from suite.world import open_world

    config = load_config(str(folder.config))
    world = open_world(config.world, config.method.groups)
    train_run(config, folder.path, world)
    world.transport.close()

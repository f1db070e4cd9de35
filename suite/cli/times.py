"""`suite times`: the tables of published, predicted and emulated iteration times."""

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.results import ResultsOption


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(times)


def times(
    profile: Annotated[
        str, typer.Argument(help="Profile whose tables to write; `reference` are the kept ones.")
    ] = "laptop",
    results: ResultsOption = Path("results"),
    measure_selection: Annotated[
        bool,
        typer.Option("--measure-selection", help="First measure how many copies of memory our selection takes here."),
    ] = False,
) -> None:
    """Write results/PROFILE/tables with the iteration times of the published models, predicted and emulated.

    predicted.csv, crossings.csv, iteration_times.csv, emulated.csv and emulated_timeline.csv, and run_times.csv for the
    profile's own experiments. What our selection would have bought is in them where tables/selection.json is there;
    --measure-selection writes it.

    Example: `suite times laptop`
    """
    from suite.config.profiles import profile_cells
    from suite.speed.emulated import REFERENCE
    from suite.speed.tables import read_copies, selection_file, write_tables

    if profile != REFERENCE:
        profile_cells(profile)  # refuses one that is not there
    folder = results / profile
    if measure_selection:
        from suite.bench.select import RESNET50, bench_select
        from suite.record.atomic import write_json

        write_json(selection_file(folder), bench_select(RESNET50, density=0.001, repeats=5))
        print(selection_file(folder))
    for path in write_tables(folder):
        print(path)
    if read_copies(folder) is None:
        print(f"without our selection, as there is no {selection_file(folder)}; --measure-selection writes it")

"""Commands that build on what has been run: states, aggregate, track, claims, report, so-far, keep, drift."""

from pathlib import Path
from typing import Annotated, Any

import typer


def _known(profile: str) -> str:
    from suite.config.profiles import profile_cells

    profile_cells(profile)  # refuses one that is not there
    return profile


ProfileArgument = Annotated[
    str, typer.Argument(help="Profile whose results to read: `suite list profiles`.", callback=_known)
]
ResultsOption = Annotated[Path, typer.Option("--results", help="Folder with one folder per profile.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (states, aggregate, track, claims, report, so_far, keep, drift):
        app.command()(command)


def states(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Show what became of every cell of PROFILE, and why those ended that did; writes tables/states.csv.

    Example: `suite states cifar-cpu`
    """
    from rich.console import Console
    from rich.table import Column, Table

    from suite.record.states import DONE, cell_states, write_states

    write_states(results / profile)
    found = cell_states(results / profile)
    longest = max((len(one.run) for one in found), default=0)
    cell = Column("cell", min_width=longest - len(profile) - 1)  # which can be copied, however narrow the terminal
    table = Table(
        cell, "state", "iteration", Column("reason", overflow="fold"), title=f"Cells of {profile} that are not done"
    )
    for one in found:
        if one.state != DONE:
            iteration = "" if one.iteration is None else str(one.iteration)
            table.add_row(one.run.partition("/")[2], one.state, iteration, one.reason.partition("\n")[0])
    if table.row_count:
        Console().print(table)
    counts = {state: sum(one.state == state for one in found) for state in dict.fromkeys(one.state for one in found)}
    print(", ".join(f"{count} {state}" for state, count in counts.items()))


def so_far(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Report on what PROFILE has finished, without training any more; what is missing is said.

    Example: `suite so-far cifar-cpu`
    """
    import subprocess
    import sys

    from suite.cli.times import times
    from suite.errors import SuiteError

    states(profile, results)
    aggregate(profile, results)
    times(profile, results)
    drift(profile, results)
    drawn = subprocess.run([sys.executable, "-m", "plots", "--results", str(results / profile)])
    if drawn.returncode:
        raise SuiteError("the figures could not be drawn; run from the root of the suite's checkout")
    claims(profile, results)
    report(profile, results)


def aggregate(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Write results/PROFILE/tables/*.csv from the finished runs.

    Example: `suite aggregate laptop`
    """
    from suite.record.aggregate import aggregate as build

    for path in build(results / profile):
        print(path)


def track(
    profile: ProfileArgument = "laptop",
    results: ResultsOption = Path("results"),
    server: Annotated[
        str | None, typer.Option(help="URI of a tracking server, in place of the file.", show_default=False)
    ] = None,
) -> None:
    """Import the finished runs into MLflow (results/PROFILE/mlflow.db); importing twice changes nothing.

    Example: `suite track laptop --server http://localhost:5000`
    """
    from suite.record.track import track as import_runs

    _need_runs(results / profile)
    counts = import_runs(results / profile, server)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))


def claims(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Judge the sources' claims by the finished runs; prints the table and writes results/PROFILE/claims.json.

    Example: `suite claims laptop`
    """
    from rich.console import Console
    from rich.table import Table

    from suite.claims import judge_claims
    from suite.words import plural

    _need_runs(results / profile)
    judged = judge_claims(results / profile)
    table = Table("claim", "verdict", "value", "of", "why", title=f"Claims, judged by profile {profile}")
    for claim in judged["claims"]:
        shown = [check for check in claim["checks"] if check["value"] is not None]
        values = "\n".join(f"{c['value']:.4g}{_spread(c)} {c['unit']}".strip() for c in shown)
        of = "\n".join(plural(check["count"], check["each"]) for check in shown)
        table.add_row(f"{claim['id']} {claim['text']}", claim["verdict"], values, of, claim["reason"])
    Console().print(table, judged["rule"])


def _need_runs(folder: Path) -> None:
    """Refuse a profile of which nothing was ever started."""
    from suite.errors import ConfigError

    if not (folder / "runs").is_dir():
        raise ConfigError(f"there are no runs in {folder}; train them with `make replicate PROFILE={folder.name}`")


def _spread(check: dict[str, Any]) -> str:
    return "" if check["spread"] is None else f" ± {check['spread']:.2g}"


def report(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Write results/PROFILE/report.html from tables, figures and claims.

    Example: `suite report laptop`
    """
    from suite.report import build_report

    _need_runs(results / profile)
    print(build_report(results / profile))


def keep(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Keep what is small of a profile's results in results/reference/PROFILE, to be committed.

    Example: `suite keep laptop`
    """
    from suite.record.reference import keep as keep_results

    _need_runs(results / profile)
    print(keep_results(results / profile))


def drift(profile: ProfileArgument = "laptop", results: ResultsOption = Path("results")) -> None:
    """Set the finished runs beside those kept in results/reference/PROFILE; writes tables/drift.csv.

    On one kind of processor equal settings give equal bits. Elsewhere seeds are paired and tested.

    Example: `suite drift laptop`
    """
    from rich.console import Console
    from rich.table import Table

    from suite.record.reference import drift as compare

    _need_runs(results / profile)
    found = compare(results / profile)
    if not found:
        print(f"no finished run of {profile} is kept in {results}/reference/{profile}")
        return
    table = Table("run", "state", "final", "kept", "p", title=f"Profile {profile} beside the kept results")
    for one in found:
        numbers = ("" if value is None else f"{value:.4g}" for value in (one.final, one.kept, one.p))
        table.add_row(f"{one.experiment}/{one.method}/{one.seed}", one.state, *numbers)
    Console().print(table)

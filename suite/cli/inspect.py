"""Commands that look without training: list, doctor."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from suite.cli.train import DataRootOption


class Kind(StrEnum):
    """What `suite list` can list."""

    methods = "methods"
    models = "models"
    datasets = "datasets"
    claims = "claims"
    profiles = "profiles"
    cells = "cells"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("list")(list_)
    app.command()(doctor)


def list_(
    what: Annotated[Kind, typer.Argument(help="What to list.")],
    profile: Annotated[str, typer.Option(help="Profile whose cells to list.")] = "laptop",
) -> None:
    """List methods, models, datasets, claims, profiles, or the cells (training runs) of a profile.

    Example: `suite list cells --profile smoke`
    """
    for name, text in _listing(what, profile):
        print(f"{name:<28} {text}")


def _listing(what: Kind, profile: str) -> list[tuple[str, str]]:
    if what is Kind.methods:
        from suite.methods import METHODS

        return [(name, _summary(method.__doc__)) for name, method in sorted(METHODS.items())]
    if what is Kind.claims:
        from suite.claims import all_claims

        return [(f"{name} {claim.id}", claim.text) for name, claims in all_claims().items() for claim in claims]
    if what is Kind.profiles:
        from suite.config.profiles import read_experiments, replication_folders
        from suite.words import plural

        specs = {folder.name: read_experiments(folder / "experiments.yaml") for folder in replication_folders()}
        return [
            (name, f"{folder}: {plural(len(experiments), 'experiment')}, {', '.join(experiments)}")
            for folder, spec in specs.items()
            for name, experiments in spec.profiles.items()
        ]
    if what is Kind.cells:
        from suite.config.profiles import profile_cells

        return [(cell.address, cell.title) for cell in profile_cells(profile)]
    from suite.config.experiment import variants

    return [(name, _summary(settings.__doc__)) for name, settings in variants(what.value.removesuffix("s")).items()]


def _summary(docstring: str) -> str:
    return " ".join(docstring.split("\n\n")[0].split())


def doctor(
    data_root: DataRootOption = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Look at the cluster instead: a small job on every node of the partition.")
    ] = False,
    site: Annotated[Path, typer.Option(help="Where the cluster is described.")] = Path("cluster/slurm/site.yaml"),
    patience: Annotated[float, typer.Option(help="Seconds to wait for the cluster's nodes.")] = 300.0,
) -> None:
    """Tell what this machine can and cannot do; exits with 1 when the main job (make replicate) could not run.

    With --slurm, tell what the nodes of a cluster have; exits with 1 when one of them cannot train with the others.
    """
    if slurm:
        from suite.cli.cluster import report_cluster

        raise typer.Exit(0 if report_cluster(site, patience) else 1)
    from suite.cli.doctor import examine

    findings = examine()
    for finding in findings:
        print(f"{finding.mark:<4} {finding.name:<22} {finding.text}")
    if any(finding.mark == "no" and finding.needed for finding in findings):
        raise typer.Exit(1)

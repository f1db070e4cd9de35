"""Commands that look without training: list, doctor."""

import inspect
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

import typer
from pydantic.fields import FieldInfo

from suite.cli.train import DataRootOption
from suite.config.strict import Strict


class Kind(StrEnum):
    """What `suite list` can list."""

    methods = "methods"
    models = "models"
    datasets = "datasets"
    claims = "claims"
    settings = "settings"
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
    """List methods, models, datasets, claims, settings of a run, profiles, or the cells (training runs) of a profile.

    Examples:

    `suite list cells --profile smoke` names the runs of profile smoke.

    `suite list settings` names all keys of a configuration file and of `--set`, with their defaults.
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
    if what is Kind.settings:
        return list(_settings())
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


def _settings() -> Iterator[tuple[str, str]]:
    """Every key of a run's configuration with its default and description; of variants, whose they are."""
    from suite.config.experiment import ExperimentConfig, variants
    from suite.methods import METHODS

    named = {"model": variants("model"), "data": variants("dataset")}
    named["method"] = {name: method.Settings for name, method in METHODS.items()}
    for section, field in ExperimentConfig.model_fields.items():
        if section not in named:
            yield from _keys(section, field)
            continue
        owners: dict[tuple[str, str], list[str]] = {}
        for name, settings in sorted(named[section].items()):
            for key, inner in settings.model_fields.items():
                for row in _keys(f"{section}.{key}", inner) if key != "name" else ():
                    owners.setdefault(row, []).append(name)
        yield f"{section}.name", f"one of {', '.join(sorted(named[section]))}"
        for (key, text), names in owners.items():
            yield key, f"{text} [{', '.join(names)}]"


def _keys(key: str, field: FieldInfo) -> Iterator[tuple[str, str]]:
    """The key of a field, or those below it where it holds a section."""
    section = next((m for m in (field.annotation, *get_args(field.annotation)) if inspect.isclass(m)), None)
    if section is not None and issubclass(section, Strict):
        if section is not field.annotation:
            given = "required" if field.is_required() else "none by default"
            yield key, given + (f": {field.description}" if field.description else "")
        for name, inner in section.model_fields.items():
            yield from _keys(f"{key}.{name}", inner)
        return
    default = (
        "required" if field.is_required() else json.dumps(field.get_default(call_default_factory=True), default=str)
    )
    yield key, default + (f": {field.description}" if field.description else "")


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

    Example: `suite doctor --slurm`
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

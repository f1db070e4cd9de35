"""Commands that look without training: list, plan, doctor."""

from enum import StrEnum
from typing import Annotated

import typer

from suite.cli.train import ConfigArgument, SetOption


class Kind(StrEnum):
    """What `suite list` can list."""

    methods = "methods"
    models = "models"
    datasets = "datasets"
    claims = "claims"
    cells = "cells"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("list")(list_)
    app.command()(plan)
    app.command()(doctor)


def list_(
    what: Annotated[Kind, typer.Argument(help="What to list.")],
    profile: Annotated[str, typer.Option(help="Profile whose cells to list.")] = "laptop",
) -> None:
    """List methods, models, datasets, claims, or the cells (training runs) of a profile."""
    for name, text in _listing(what, profile):
        print(f"{name:<28} {text}")


def _listing(what: Kind, profile: str) -> list[tuple[str, str]]:
    if what is Kind.methods:
        from suite.methods import METHODS

        return [(name, _summary(method.__doc__)) for name, method in sorted(METHODS.items())]
    if what is Kind.claims:
        from suite.claims import all_claims

        return [(claim.id, claim.text) for claim in all_claims()]
    if what is Kind.cells:
        from suite.config.profiles import profile_cells

        return [(cell.address, cell.title) for cell in profile_cells(profile)]
    from suite.config.experiment import variants

    return [(name, _summary(settings.__doc__)) for name, settings in variants(what.value.removesuffix("s")).items()]


def _summary(docstring: str) -> str:
    return " ".join(docstring.split("\n\n")[0].split())


def plan(config: ConfigArgument, set_: SetOption = None) -> None:
    """Show what one worker would send in an iteration of CONFIG: segments, k, messages, bytes."""
    from rich.console import Console
    from rich.table import Table

    from suite.config import load_config
    from suite.data import load_dataset
    from suite.methods import build_method
    from suite.models import build_model
    from suite.plan import Layout

    experiment = load_config(config, set_ or [])
    named = list(build_model(experiment, load_dataset(experiment)).named_parameters())
    layout = Layout(tuple(name for name, _ in named), tuple(p.numel() for _, p in named))
    plan = build_method(experiment.method).plan(layout, epoch=len(getattr(experiment.method, "density_warmup", ())))
    table = Table(
        "message", "segment", "entries d", "sent k", "density", title=f"{experiment.method.name}: one iteration"
    )
    for number, message in enumerate(plan.messages):
        for segment in message.segments:
            k = segment.size if segment.k is None else segment.k
            table.add_row(str(number), segment.name, f"{segment.size:,}", f"{k:,}", f"{k / segment.size:.4g}")
    workers = experiment.world.workers
    sent = (workers - 1) * 8 * plan.entries if plan.is_sparse else 2 * (workers - 1) / workers * 4 * plan.entries
    how = "all-gather of 8 bytes an entry" if plan.is_sparse else "ring all-reduce of 4 bytes an entry"
    Console().print(table)
    print(f"{len(plan.messages)} messages, {plan.entries:,} of {layout.size:,} entries;")
    print(f"one of {workers} workers puts {sent / 1e6:.3f} MB on the wire ({how})")


def doctor() -> None:
    """Tell what this machine can and cannot do; exits with 1 when the main job (make replicate) could not run."""
    from suite.cli.doctor import examine

    findings = examine()
    for finding in findings:
        print(f"{finding.mark:<4} {finding.name:<22} {finding.text}")
    if any(finding.mark == "no" and finding.needed for finding in findings):
        raise typer.Exit(1)

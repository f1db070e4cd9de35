"""`suite bench select|exchange|step|world|predict|loading|pipeline`: how fast, mostly against baselines."""

import json
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from suite.cli.predict import SubjectArgument
from suite.cli.train import DataRootOption, SetOption

bench = typer.Typer(
    help="Time selection, exchange, whole iterations or loading against baselines, in turn within one run."
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="A small problem, twice: shows that it works, not how fast.")
]
DensityOption = Annotated[float, typer.Option(help="rho = k / d, the share of entries that is sent.", min=0, max=1)]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(bench, name="bench", no_args_is_help=True)


@bench.command("select")
def select(
    size: Annotated[
        int | None, typer.Option(min=1, help="Elements d. [default: ResNet-50's]", show_default=False)
    ] = None,
    density: DensityOption = 0.001,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds to take the medians of.")] = 15,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Time exact top-k on one thread against torch.topk and against a plain copy of the vector.

    Example: `suite bench select --json`
    """
    from suite.bench.select import RESNET50, bench_select

    size, repeats = (10**6, 2) if quick else (size or RESNET50, repeats)
    found = bench_select(size, density, repeats)
    rows = [
        (name, f"{1e3 * seconds:.2f}", f"{found['gigabytes_per_second'][name]:.1f}", f"{1e3 * limit:.2f}")
        for (name, seconds), limit in zip(found["seconds"].items(), found["limit_seconds"].values(), strict=True)
    ]
    title = f"{found['k']:,} of {size:,} float32, one thread, medians of {repeats}"
    lines = [
        f"ours: {found['ratio_to_topk']:.1f} times as fast as torch.topk, {found['ratio_to_copy']:.2f} copies long",
        f"fused with accumulating and clearing: {found['fused_ratio_to_copy']:.2f} copies long",
    ]
    _show(found, as_json, title, ("case", "ms", "GB/s", "ms at the copy's GB/s"), rows, lines)


@bench.command("exchange")
def exchange(
    ranks: Annotated[int, typer.Option(min=2, help="Horovod ranks, one worker each.")] = 4,
    model: Annotated[str, typer.Option(help="Image model whose gradients are exchanged.")] = "resnet50",
    density: DensityOption = 0.001,
    messages: Annotated[str, typer.Option(help="LAGS's messages: one, or layer for one a tensor.")] = "one",
    repeats: Annotated[int, typer.Option(min=1, help="Rounds to take the medians of.")] = 7,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Time the exchange alone on Horovod ranks against the published scheme and a dense all-reduce.

    Example: `suite bench exchange --quick`
    """
    from suite.bench.exchange import bench_exchange

    ranks, model, repeats = (2, "resnet20", 2) if quick else (ranks, model, repeats)
    found = bench_exchange(model, ranks, density, messages, repeats)
    rows = [
        (name, f"{1e3 * seconds:.1f}", f"{found['messages'][name]}", f"{found['bytes_sent'][name] / 1e6:.2f}")
        for name, seconds in found["seconds"].items()
    ]
    title = f"{found['size']:,} entries in {found['tensors']} tensors, {ranks} ranks, medians of {repeats}"
    lines = [
        f"ours: {found['ratio_to_published_scheme']:.1f} times as fast as the published scheme, "
        f"{found['ratio_to_dense']:.2f} times as fast as {found['dense_baseline'].replace('_', ' ')}"
    ]
    _show(found, as_json, title, ("scheme", "ms, slowest rank", "messages", "MB a rank sends"), rows, lines)


@bench.command("step")
def step(
    config: Annotated[str, typer.Argument(help="A YAML file, or the address of a cell.")] = "laptop/ranks/dense/0",
    set_: SetOption = None,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of each run that count.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each case, in turn.")] = 2,
    quick: QuickOption = False,
    as_json: JsonOption = False,
    data_root: DataRootOption = None,
) -> None:
    """Time training iterations of dense, SLGS and LAGS, with and without overlap, by short runs of `suite train`.

    Example: `suite bench step --quick`
    """
    from suite.bench.step import bench_step
    from suite.config import load_config
    from suite.train.check import check_inputs
    from suite.world.check import check_machine

    experiment = load_config(config, set_ or [])
    check_machine(experiment.world)
    check_inputs(experiment)
    iterations, rounds = (2, 1) if quick else (iterations, rounds)
    found = bench_step(experiment, iterations, rounds)
    rows = [
        (name, f"{ms:.1f}", f"{found['ratio_to_dense'][name]:.2f}", _phases(found["phases_milliseconds"][name]))
        for name, ms in found["milliseconds"].items()
    ]
    title = (
        f"{found['model']} on {found['data']}, {found['workers']} workers on {found['processes']} processes "
        f"({found['transport']}), medians of {found['iterations']}"
    )
    _show(found, as_json, title, ("case", "ms", "dense / case", "phases, ms"), rows, [])


@bench.command("world")
def world(
    config: Annotated[str, typer.Argument(help="A YAML file, or the address of a cell.")] = "laptop/digits/lags/0",
    set_: SetOption = None,
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of each run that count.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each case, in turn.")] = 3,
    quick: QuickOption = False,
    as_json: JsonOption = False,
    data_root: DataRootOption = None,
) -> None:
    """Time iterations of all workers in one process against as many plain steps of one worker, which are the limit.

    Example: `suite bench world laptop/digits/lags/0`
    """
    from suite.bench.world import bench_world
    from suite.config import load_config
    from suite.train.check import check_inputs

    experiment = load_config(config, set_ or [])
    check_inputs(experiment)
    iterations, rounds = (2, 1) if quick else (iterations, rounds)
    found = bench_world(experiment, iterations, rounds)
    rows = [(name, f"{ms:.1f}", f"{found['ratio_to_plain'][name]:.3f}") for name, ms in found["milliseconds"].items()]
    title = (
        f"{found['model']} on {found['data']}, {found['workers']} workers with a batch of {found['batch']}, "
        f"{found['threads']} thread{'s' * (found['threads'] > 1)}, medians of {found['iterations']}"
    )
    _show(found, as_json, title, ("case", "ms an iteration", "case / plain"), rows, [])


@bench.command("predict")
def predict(
    subject: SubjectArgument = "ResNet-50",
    network: Annotated[str, typer.Option(help="A named network.")] = "1gbe",
    workers: Annotated[int, typer.Option(min=2, help="P, the number of workers.")] = 16,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds to take the medians of.")] = 31,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Time predictions of SUBJECT's iteration: with a plan given, merging, and all plans of `suite predict`.

    Example: `suite bench predict ResNet-50`
    """
    from suite.bench.predict import bench_predict
    from suite.speed.networks import network_at
    from suite.speed.subject import read_subject

    found = bench_predict(read_subject(subject), network_at(network, workers), 2 if quick else repeats)
    rows = [(name, f"{1e3 * seconds:.2f}") for name, seconds in found["seconds"].items()]
    title = (
        f"{found['subject']} on {network}: {found['layers']} layers, {workers} workers, medians of {found['repeats']}"
    )
    lines = [f"a prediction of a given plan takes {1e3 * found['longest_prediction_s']:.2f} ms at most"]
    _show(found, as_json, title, ("case", "ms"), rows, lines)


@bench.command("loading")
def loading(
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            help="YAML files, or addresses of cells. [default: dense ResNet-20 and LSTM of profile cifar-cpu]",
            show_default=False,
        ),
    ] = None,
    set_: SetOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds to take the medians of.")] = 9,
    quick: QuickOption = False,
    as_json: JsonOption = False,
    data_root: DataRootOption = None,
) -> None:
    """Time the pipeline that prepares batches, on one thread, against what a process that trains consumes.

    Example: `suite bench loading laptop/digits/lags/0`
    """
    from rich.table import Column

    from suite.bench.loading import bench_loading
    from suite.config import load_config

    sources = configs or ["cifar-cpu/resnet20/dense/0", "cifar-cpu/lstm/dense/0"]
    experiments = {source: load_config(source, set_ or []) for source in sources}
    found = {
        "benchmark": "loading",
        "repeats": 2 if quick else repeats,
        "cases": {name: bench_loading(experiment, 2 if quick else repeats) for name, experiment in experiments.items()},
    }
    rows = [
        (name, case["unit"], *(f"{case[key]:,.0f}" for key in ("loaded", "consumed", "copied")), f"{case['ratio']:.0f}")
        for name, case in found["cases"].items()
    ]
    columns = (Column("configuration", overflow="fold"), "of", "loaded/s", "consumed/s", "copied/s", "ratio")
    lines = [
        "consumed: forward and backward on one thread; copied: if a batch took no longer than a plain copy of it;",
        "ratio: how many processes that train one thread could feed",
    ]
    _show(found, as_json, f"Loading on one thread, medians of {found['repeats']}", columns, rows, lines)


@bench.command("pipeline")
def pipeline(
    runs: Annotated[int, typer.Option(min=1, help="Made-up finished runs of 16 ranks each.")] = 500,
    quick: QuickOption = False,
    as_json: JsonOption = False,
) -> None:
    """Time what is built from runs, with peak memory: the pipeline's plan, tables, MLflow, figures, claims, report.

    Example: `suite bench pipeline --runs 100`
    """
    from pathlib import Path

    from suite.bench.pipeline import bench_pipeline
    from suite.errors import ConfigError

    if not Path("Snakefile").exists():
        raise ConfigError("there is no Snakefile here; run from the root of the suite's checkout")
    found = bench_pipeline(20 if quick else runs, Path.cwd())
    rows = [
        (name, f"{seconds:.1f}", f"{found['cpu_seconds'][name]:.1f}", f"{found['peak_megabytes'][name]:,.0f}")
        for name, seconds in found["seconds"].items()
    ]
    sizes = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in found["bytes"].items())
    title = f"{found['runs']} runs of {found['ranks']} ranks; each step a process of its own"
    _show(found, as_json, title, ("step", "seconds", "on a processor", "peak MB"), rows, [sizes])


def _phases(found: dict[str, float]) -> str:
    return ", ".join(f"{name.removesuffix('_s')} {ms:.1f}" for name, ms in found.items() if name != "iteration_s")


def _show(
    found: dict[str, Any], as_json: bool, title: str, columns: Iterable, rows: Iterable[tuple], lines: list[str]
) -> None:
    """The result as one JSON object, or as a table with conclusions below."""
    if as_json:
        print(json.dumps(found, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    for line in lines:
        print(line)

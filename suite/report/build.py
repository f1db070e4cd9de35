"""Builds results/<profile>/report.html."""

import base64
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from suite import words
from suite.errors import ConfigError
from suite.record.atomic import replacing
from suite.report import words_of_times
from suite.report.grid import read_grid
from suite.report.methods import method_costs
from suite.report.read import ProfileResults
from suite.report.summary import delta_rows, dense_in_words, results_of
from suite.report.times import IterationTimes
from suite.speed.published import Published, arithmetic, findings, read_published

_LARGEST_SVG = 400_000  # bytes; beyond it the PNG is smaller and quicker to show
_VERDICTS = ("reproduced", "not reproduced", "not judged")
_MACHINE = ("host", "cpu", "cores", "device", "platform", "threads", "transport", "controller", "commit")


def build_report(results: Path, replications: Path = Path("replications")) -> Path:
    """Write results/<profile>/report.html from what is stored there, and return its path.

    `replications` is the folder whose */published.yaml hold the papers' own numbers; without any, the report says in
    their place that they are left out.
    """
    profile, times = ProfileResults.read(results), IterationTimes.read(results)
    published = [read_published(path) for path in sorted(replications.glob("*/published.yaml"))]
    rows = [(paper, arithmetic(paper)) for paper in published]
    template = _templates().get_template("report.html.j2")
    page = template.render(
        profile=profile.name,
        overview=_overview(profile),
        counts=[(verdict, sum(claim["verdict"] == verdict for claim in profile.claims)) for verdict in _VERDICTS],
        rule=profile.rule,
        grid=read_grid(results),
        claims=profile.claims,
        figures=[figure | {"data": _data_uri(figure["file"])} for figure in profile.figures if "missing" not in figure],
        missing=[figure for figure in profile.figures if "missing" in figure],
        experiments=[
            {"title": of.title.iloc[0], "results": (found := results_of(of)), "words": dense_in_words(found)}
            for _, of in profile.runs.groupby("experiment", sort=False)
        ],
        costs=method_costs(profile.runs, profile.run_times),
        kinds=delta_rows(profile.delta_by_kind),
        times=None if times.cells.empty else _times(times, published),
        published=[{"paper": paper, "rows": of, "findings": findings(paper, of)} for paper, of in rows],
        runs=profile.runs.to_dict("records"),
        addresses=dict(zip(profile.runs.run_id, profile.runs.run, strict=True)),
        environment=_environment(profile.environments),
    )
    target = results / "report.html"
    with replacing(target) as aside:
        aside.write_text(page, encoding="utf-8")
    return target


def _times(times: IterationTimes, published: list[Published]) -> dict[str, Any]:
    """What the section on iteration times shows."""
    rows = times.side_by_side()
    summary = [
        words_of_times.accuracy(times),
        *words_of_times.comparison(rows),
        words_of_times.too_fast(times, rows),
        words_of_times.unexplained(times, rows),
    ]
    return {
        "origin": words_of_times.origin(times),
        "summary": [sentence for sentence in summary if sentence],
        "rows": rows,
        "authors_bounds": {
            model: bound for paper in published for model, bound in paper.speedup_bound.authors_values.items()
        },
        "pipelining": words_of_times.pipelining(rows),
        "choices": times.choices(),
        "ratios": times.ratios(),
        "crossings": list(times.crossing_rows()),
        "conflict": words_of_times.conflict(times),
        "emulated": times.emulated.to_dict("records"),
        "missing": words_of_times.missing(times),
    }


def _decimals(value: float | None, places: int) -> str:
    """A number with so many decimals, a dash for none."""
    return "–" if value is None or value != value else f"{value:.{places}f}".replace("-", "−")


def _share(value: float) -> str:
    """A share in percent, a dash for none."""
    return "–" if value != value else f"{100 * value:.1f}%".replace("-", "−")


def _count(needed: int | None, noun: str) -> str:
    """How many values would decide; beyond what was searched there is no number."""
    return f"more than 1,000 {noun}s" if needed is None else words.plural(needed, noun)


def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    templates.filters |= {
        "number": words.number, "amount_of_bytes": words.amount_of_bytes, "plural": words.plural,
        "metric_name": words.metric_name, "network_name": words.network_name, "method_label": words.method_label,
        "p_text": words.p_text, "count": _count,
        "decimals": _decimals, "share": _share, "crossing_text": words_of_times.crossing_text,
    }  # fmt: skip
    templates.globals["metric_value"] = words.metric_value
    return templates


def _overview(profile: ProfileResults) -> str:
    """What was run where, as one paragraph."""
    runs = profile.runs
    experiments = "; ".join(
        f"{of.title.iloc[0]} ({words.plural(len(of), 'run')})" for _, of in runs.groupby("experiment", sort=False)
    )
    places = words.listing(
        f"{words.plural(len(of), 'run')} with {words.placement(*place)}"
        for place, of in runs.groupby(["workers", "processes", "transport"], sort=False)
    )
    text = f"{words.plural(len(runs), 'training run')} of {words.plural(runs.experiment.nunique(), 'experiment')}: "
    text += f"{experiments}. {places[0].upper()}{places[1:]}."
    facts = dict(_environment(profile.environments))
    machine = [facts[key] for key in ("host", "cpu", "platform") if key in facts]
    if machine:
        cores = f", {facts['cores']} cores" if "cores" in facts else ""
        text += f" Machine: {', '.join(machine)}{cores}."
    software = [f"{name} {facts[name]}" for name in ("python", "torch", "horovod") if name in facts]
    if software:
        text += f" Software: {', '.join(software)}."
    if "commit" in facts:
        text += f" Source: commit {facts['commit']}."
    if profile.finished:
        first, last = profile.finished
        text += f" Trained on {first}." if first == last else f" Trained from {first} to {last}."
    return text


def _environment(environments: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name and value of every fact the runs recorded; several values where the runs differ."""
    found: dict[str, dict[str, None]] = {}
    for environment in environments:
        facts = {key: environment.get(key) for key in _MACHINE} | environment.get("versions", {})
        for key, value in facts.items():
            if value is not None:
                found.setdefault(key, {})[str(value)] = None
    return [(key, ", ".join(values)) for key, values in found.items()]


def _data_uri(file: Path) -> str:
    """The figure as a data URI: the SVG, or the PNG where the SVG is large."""
    svg, png = file.with_suffix(".svg"), file.with_suffix(".png")
    try:
        chosen, kind = (svg, "svg+xml") if svg.stat().st_size <= _LARGEST_SVG else (png, "png")
        data = base64.b64encode(chosen.read_bytes()).decode()
    except FileNotFoundError as error:
        raise ConfigError(f"the figure {error.filename} is missing; draw the figures again") from error
    return f"data:image/{kind};base64,{data}"

"""One iteration of each method on several processes, traced and predicted: what computes while messages travel."""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from plots.lanes import draw_titled, timeline_of
from plots.style import new_figure
from plots.tables import Tables
from suite.timeline import Timeline
from suite.timeline.draw import caption
from suite.words import listing, plural

ORDER = 75
TITLE = "One iteration, traced"
MISSING = "this profile has no traced run on more than one process"


def draw(tables: Tables) -> Figure | None:
    """For each experiment on several processes, panels of every method's first rank and seed on a common time axis: the
    traced iteration, and below it the predicted one where the run had costs to predict from."""
    shown = _first_seeds(tables)
    if not shown:
        return None
    counts = [sum(1 if run.predicted is None else 2 for run in runs) for runs in shown.values()]
    figure = new_figure(TITLE, 1.0 + 1.25 * sum(counts) + 0.35 * len(shown))
    parts = figure.subfigures(len(shown), 1, squeeze=False, height_ratios=counts).flat
    drawn = []
    for part, count, (experiment, runs) in zip(parts, counts, shown.items(), strict=True):
        if len(shown) > 1:
            part.suptitle(tables.title(experiment), x=0.01, ha="left", fontsize=10.5, fontweight="normal")
        panels = part.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        timelines = [
            (f"{title}: {caption(timeline)}", timeline)
            for run in runs
            for title, timeline in ((run.label, run.traced), (f"{run.label}, predicted", run.predicted))
            if timeline is not None
        ]
        drawn += [(panel, *titled) for panel, titled in zip(panels, timelines, strict=True)]
        panels[-1].set_xlabel("Milliseconds")
    draw_titled(figure, drawn)
    return figure


class _Run(NamedTuple):
    """One run: its first rank's iteration, and the one that costs had predicted."""

    experiment: str
    label: str
    traced: Timeline
    predicted: Timeline | None

    @property
    def until_arrival(self) -> float:
        """Seconds until back-propagation is over and the last message there: the end of a predicted iteration."""
        ends = [event.end for event in self.traced.events if event.phase in ("backward", "exchange")]
        return max(ends) - min(event.start for event in self.traced.events)


def _runs(tables: Tables) -> Iterator[_Run]:
    """Every run; methods that share a label within their experiment are told apart by their own names."""
    methods = tables.timeline.groupby(["experiment", "label"]).method.nunique()
    for (experiment, method, _), of in tables.timeline.groupby(["experiment", "method", "seed"], sort=False):
        label = of.label.iloc[0]
        if methods[experiment, label] > 1:
            label = f"{label} ({method})"
        traced, predicted = of[of.kind == "traced"], of[of.kind == "predicted"]
        first = traced[traced["rank"] == traced["rank"].min()]
        yield _Run(experiment, label, timeline_of(first), timeline_of(predicted) if len(predicted) else None)


def _first_seeds(tables: Tables) -> dict[str, list[_Run]]:
    """By experiment, the first seed of each method."""
    found: dict[str, dict[str, _Run]] = {}
    for run in _runs(tables):
        found.setdefault(run.experiment, {}).setdefault(run.label, run)
    return {experiment: list(runs.values()) for experiment, runs in found.items()}


def _caption(tables: Tables) -> str:
    reading = (
        "Intervals of one iteration on the first process, past the first iterations, which pay for set-up. Upper lane: "
        "what the process computes, blank while it waits; lower lane: its messages, each from its start until it has "
        "arrived, with waiting for slower processes. Hidden is the share of the exchange during which back-propagation "
        "is under way, selection in between included. Tracing and, where it is logged, the assumption lengthen the "
        "iteration. Predicted is an iteration in which nothing waits for slower processes, from times of layers and "
        "collectives that the run measured in its first iterations."
    )
    parts = []
    for experiment, of in tables.runs[tables.runs.hidden_share.notna()].groupby("experiment", sort=False):
        shares = of.groupby("label", sort=False).hidden_share.mean()
        parts.append(
            f"{tables.title(experiment)} ({plural(of.seed.nunique(), 'seed')}): back-propagation covers "
            + listing(f"{share:.0%} of {label}'s exchange" for label, share in shares.items())
            + ", all processes together."
        )
        runs = [run for run in _runs(tables) if run.experiment == experiment and run.predicted is not None]
        if runs:
            parts[-1] += f" {_comparison(runs)}"
    return "\n".join([reading, *parts])


def _comparison(runs: list[_Run]) -> str:
    """How long iterations were predicted to take and took, means over the seeds of each method."""
    rows = [(run.label, 1e3 * run.predicted.iteration, 1e3 * run.until_arrival) for run in runs]
    means = pd.DataFrame(rows, columns=["label", "predicted", "traced"]).groupby("label", sort=False).mean()
    texts = listing(
        f"{row.traced:.0f} ms for {label} ({row.predicted:.0f} ms predicted)" for label, row in means.iterrows()
    )
    return f"Until the last message has arrived, the traced iteration took {texts}."


CAPTION = _caption

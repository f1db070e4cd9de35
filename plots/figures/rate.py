"""How fast the gradient vanishes with the length of a run, on a problem whose full gradient is known."""

import numpy as np
from matplotlib.figure import Figure

from plots.style import legend_below, line_style, looks, panels
from plots.tables import Tables
from suite.record.rate import rate_points, slopes
from suite.words import listing, plural

ORDER = 66
TITLE = "Convergence rate on a smooth non-convex problem"
MISSING = "no experiment of this profile trains for several lengths on a problem whose full gradient is known"
_KINDS = {"mean": "Mean over the run", "least": "Least of the run"}


def draw(tables: Tables) -> Figure | None:
    """Squared norm of the full gradient over the length of the run, both logarithmic: its mean and its least value."""
    points = rate_points(tables.runs, tables.epochs)
    if slopes(points).empty:
        return None
    figure, axes = panels(TITLE, list(_KINDS.values()), 3.6)
    look_of = looks(tables.runs.method_name)
    for panel, kind in zip(axes, _KINDS, strict=True):
        for (name, label), of in points.groupby(["method_name", "label"], sort=False):
            look, middle = look_of[name], of.groupby("iterations")[kind].mean()
            panel.plot(of.iterations, of[kind], look.marker, color=look.colour, alpha=0.35, markersize=4)
            panel.plot(middle, color=look.colour, marker=look.marker, linestyle=line_style(look), label=label)
        lengths = np.array(sorted(points.iterations.unique()))
        start = points[points.iterations == lengths[0]][kind].mean()
        half = start * (lengths / lengths[0]) ** -0.5
        panel.plot(lengths, half, color="#777777", linewidth=1, linestyle=(0, (1, 1.5)), label="slope -1/2")
        panel.set(xscale="log", yscale="log", xlabel="Iterations T", ylabel="Squared norm of the full gradient")
        legend_below(panel)
    return figure


def _caption(tables: Tables) -> str:
    found = slopes(rate_points(tables.runs, tables.epochs))
    labels = dict(zip(tables.runs.method_name, tables.runs.label, strict=True))
    sentences = []
    for experiment, of in found.groupby("experiment", sort=False):
        middle = of.groupby("method_name", sort=False)[["mean", "least"]].mean()
        each = listing(
            f"{labels[name]} falls with slope {row['mean']:.2f} (least: {row['least']:.2f})"
            for name, row in middle.iterrows()
        )
        sentences.append(f"{tables.title(experiment)}, mean over {plural(of.seed.nunique(), 'seed')}: {each}.")
    reading = (
        "Each point is a run with the constant step theta / sqrt(T) that the paper's theorem takes; faint points are "
        "single seeds, lines their means. The theorem bounds the mean over a run (left) by a multiple of 1/sqrt(T) and "
        "a term that falls faster: the dotted slope of -1/2, or steeper. Equal slopes are one order of convergence."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

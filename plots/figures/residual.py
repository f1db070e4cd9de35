"""What error feedback is worth: final metric with and without the residual at the same density."""

import pandas as pd
from matplotlib.figure import Figure

from plots.style import legend_below, looks, metric, panels, series_text
from plots.tables import Tables
from suite.words import plural

ORDER = 60
TITLE = "With and without the residual"
MISSING = "no method of this profile was run both with and without error feedback"
_PAIR = ["method_name", "density"]


def draw(tables: Tables) -> Figure | None:
    """One panel a task: two bars a method and density (mean over seeds), a point a seed, dense as a line."""
    tasks = _tasks(tables)
    if not tasks:
        return None
    figure, axes = panels(TITLE, list(tasks), 3.7)
    look_of = looks(tables.runs.method_name)
    for (sparse, dense), panel in zip(tasks.values(), axes, strict=True):
        shown, ticks = metric(sparse.metric.iloc[0]), {}
        top = sparse.final.max() * shown.scale
        for place, ((name, density), of) in enumerate(sparse.groupby(_PAIR, sort=False)):
            look = look_of[name]
            ticks[place] = series_text(of.label.iloc[0], density).replace(", ", "\n")
            for kept, shift in ((True, -0.22), (False, 0.22)):
                values = of[of.ablated != kept].final * shown.scale
                panel.bar(
                    place + shift,
                    values.mean(),
                    0.4,
                    color=look.colour if kept else "white",
                    edgecolor=look.colour,
                    linewidth=1.3,
                    hatch=None if kept else "////",
                )
                panel.plot(
                    [place + shift] * len(values),
                    values,
                    "o",
                    color="#222222",
                    markersize=3.5,
                    zorder=3,
                    markerfacecolor="white",
                    markeredgewidth=0.9,
                )
                # A missing half of a pair has no mean and gets no text.
                if len(values):
                    panel.text(
                        place + shift,
                        0.06 * top,
                        f"{'with' if kept else 'without'}\n{values.mean():.1f}",
                        ha="center",
                        fontsize=9,
                        bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "none"},
                    )
        if len(dense):
            panel.axhline(
                dense.final.mean() * shown.scale,
                color=look_of["dense"].colour,
                linewidth=1.2,
                linestyle=(0, (5, 2)),
                label=dense.label.iloc[0],
            )
            legend_below(panel)
        panel.set_xticks(list(ticks), list(ticks.values()))
        panel.grid(axis="x", visible=False)
        panel.set(ylabel=shown.axis, xlim=(-0.7, len(ticks) - 0.3), ylim=(0, 1.06 * top))
    return figure


def _tasks(tables: Tables) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """By title of the ablation: sparse runs of every method and density that was also run without, and dense runs."""
    found = {}
    for _, of in tables.distinct_runs.groupby("task", sort=False):
        sparse, dense = of[of.density.notna()], of[of.method_name == "dense"]
        without = sparse[sparse.ablated]
        if len(without):
            pairs = pd.MultiIndex.from_frame(without[_PAIR])
            both = sparse[pd.MultiIndex.from_frame(sparse[_PAIR]).isin(pairs)]
            found[tables.title(without.experiment.iloc[0])] = (both, dense)
    return found


def _caption(tables: Tables) -> str:
    sentences = []
    for title, (sparse, dense) in _tasks(tables).items():
        shown = metric(sparse.metric.iloc[0])
        values = []
        for (_, density), of in sparse.groupby(_PAIR, sort=False):
            mean, seeds = of.groupby("ablated").final.mean(), of.groupby("ablated").seed.nunique()
            kept = "no run with"
            if False in mean:
                kept = f"{shown.text(mean[False])} with the residual ({plural(seeds[False], 'seed')})"
            values.append(
                f"{series_text(of.label.iloc[0], density)}: {kept} and {shown.text(mean[True])} without "
                f"({plural(seeds[True], 'seed')})"
            )
        line = f"dense {shown.text(dense.final.mean())}" if len(dense) else "a dense run of the same length is missing"
        sentences.append(f"{title}: {'; '.join(values)}; {line}.")
    reading = (
        "The residual keeps what a worker did not send and adds it to the next gradient. Filled bars are with it, "
        "hatched ones without, at the same density: means over seeds, points are single seeds, the dashed line is "
        "dense S-SGD."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

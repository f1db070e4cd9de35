"""Final test metric against density."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from plots.style import legend_below, line_style, looks, metric, panels
from plots.tables import Tables
from suite.words import listing, plural

ORDER = 50
TITLE = "Final test metric against density"
MISSING = "no method of this profile was run at two or more densities"


def draw(tables: Tables) -> Figure | None:
    """One panel a task: mean and every seed at each density, dense as a band from its lowest to its highest seed."""
    sweeps = _sweeps(tables)
    if not sweeps:
        return None
    figure, axes = panels(TITLE, list(sweeps), 3.7)
    look_of = looks(tables.runs.method_name)
    for runs, panel in zip(sweeps.values(), axes, strict=True):
        shown = metric(runs.metric.iloc[0])
        dense = runs[runs.method_name == "dense"]
        if len(dense):
            colour, finals = look_of["dense"].colour, dense.final * shown.scale
            panel.axhspan(finals.min(), finals.max(), color=colour, alpha=0.18, linewidth=0)
            panel.axhline(finals.mean(), color=colour, linewidth=1.2, label=dense.label.iloc[0])
        sparse = runs[runs.density.notna()]
        for (name, label), of in sparse.groupby(["method_name", "label"], sort=False):
            look, mean = look_of[name], of.groupby("density").final.mean() * shown.scale
            panel.plot(of.density, of.final * shown.scale, look.marker, color=look.colour, alpha=0.35, markersize=4)
            panel.plot(mean, color=look.colour, marker=look.marker, linestyle=line_style(look), label=label)
        panel.set_xscale("log")
        panel.set_xticks(sorted(sparse.density.unique()))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.set(xlabel="Density: share of entries sent", ylabel=shown.axis)
        legend_below(panel)
    return figure


def _sweeps(tables: Tables) -> dict[str, pd.DataFrame]:
    """By title of the sweep: all runs of its task but ablations, where a method has two or more densities.

    The main runs of the same task join in at their own density, and bring dense with them.
    """
    found = {}
    for _, of in tables.distinct_runs[~tables.distinct_runs.ablated].groupby("task", sort=False):
        densities = of.groupby(["experiment", "method_name"]).density.nunique()
        if densities.max() >= 2:
            experiment = densities.idxmax()[0]
            found[tables.title(experiment)] = of
    return found


def _caption(tables: Tables) -> str:
    sentences = []
    for title, runs in _sweeps(tables).items():
        shown, sparse = metric(runs.metric.iloc[0]), runs[runs.density.notna()]
        lowest = sparse[sparse.density == sparse.density.min()].groupby("label", sort=False).final.mean()
        seeds = sparse.groupby(["method_name", "density"]).seed.nunique()
        spread = str(seeds.min()) if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
        dense, beside = runs[runs.method_name == "dense"], "a dense run of the same length is missing"
        if len(dense):
            beside = f"dense reaches {shown.text(dense.final.mean())} ({plural(dense.seed.nunique(), 'seed')})"
        sentences.append(
            f"{title}: at the lowest density, {sparse.density.min():g}, "
            f"{listing(f'{label} reaches {shown.text(value)}' for label, value in lowest.items())}; {beside}. "
            f"Seeds a point: {spread}."
        )
    reading = (
        "Density, on a logarithmic scale, is the share of gradient entries each worker sends. Lines are means over "
        "seeds, faint points single seeds; the grey line and band are dense S-SGD, mean and lowest to highest seed. "
        "Main runs of the same model, data, workers and iterations are included at their own density."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

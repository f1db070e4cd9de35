"""Iteration time over the number of workers: predicted to a thousand, emulated where 16 hosts can be."""

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from plots.style import line_style, looks, new_figure
from plots.tables import Tables
from plots.times import emulated_cells, paper_plans
from suite.words import listing, method_label, network_name, plural

ORDER = 88
TITLE = "Iteration time over the number of workers"
MISSING = "no iteration times were predicted over a range of workers"

_SIZES = {"dense": 6, "slgs": 8, "lags": 4.5}


def draw(tables: Tables) -> Figure | None:
    """A row of panels a model, a column a network: a line a method, and a marker an emulated cell."""
    rows, cells = paper_plans(tables, "scaling"), emulated_cells(tables)
    if rows.empty:
        return None
    models, networks, look_of = list(rows.model.unique()), list(rows.network.unique()), looks(rows.method)
    figure = new_figure(TITLE, 1.0 + 1.75 * len(models))
    grid = figure.subplots(len(models), len(networks), sharex=True, sharey="row", squeeze=False)
    for model, line in zip(models, grid, strict=True):
        for network, panel in zip(networks, line, strict=True):
            for method, of in rows[(rows.model == model) & (rows.network == network)].groupby("method", sort=False):
                look = look_of[method]
                panel.plot(of.workers, 1e3 * of.iteration_s, color=look.colour, linestyle=line_style(look),
                           label=method_label(method))  # fmt: skip
                seen = cells[(cells.model == model) & (cells.network == network) & (cells.method == method)]
                # Hollow and of different sizes: two methods may take the same time.
                panel.plot(seen.workers, 1e3 * seen.emulated_s, look.marker, color=look.colour, zorder=3,
                           markersize=_SIZES[method], markerfacecolor="none", markeredgewidth=1.3)  # fmt: skip
            panel.set_title(f"{model}, {network_name(network)}")
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.xaxis.set_major_locator(LogLocator(base=2, subs=(1,), numticks=20))
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_minor_locator(NullLocator())
            panel.tick_params(axis="x", labelsize=8)
        line[0].set_ylabel("Milliseconds")
    for panel in grid[-1]:
        panel.set_xlabel("Workers")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, handlelength=2.6)
    return figure


def _caption(tables: Tables) -> str:
    reading = (
        "Milliseconds of one iteration with the authors' computation and selection times; both axes are logarithmic. "
        "Lines are predicted, markers emulated. A sparse all-gather moves the entries of all other workers, so its "
        "time grows with their number; a ring all-reduce moves at most two gradients, but takes two more steps for "
        "every worker."
    )
    rows, cells = paper_plans(tables, "scaling"), emulated_cells(tables)
    parts = []
    for network, of in rows.groupby("network", sort=False):
        texts = []
        for model, own in of.groupby("model", sort=False):
            grid = own.pivot_table(index="workers", columns="method", values="iteration_s")
            ratio = grid.dense / grid.lags
            texts.append(f"{ratio.iloc[0]:.2f} and {ratio.iloc[-1]:.2f} for {model}")
        few, many = of.workers.min(), of.workers.max()
        parts.append(
            f"{network_name(network)}: the time of dense over that of LAGS-SGD with {few} and with {many:,} workers is "
            f"{listing(texts)}."
        )
    if len(cells):
        counts = listing(str(count) for count in sorted(cells.workers.unique()))
        parts.append(f"{plural(len(cells), 'cell')} emulated, with {counts} workers.")
    return "\n".join([reading, *parts])


CAPTION = _caption

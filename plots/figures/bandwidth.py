"""How the speed-up changes with the network's bandwidth, and where dense is the faster one (RQ5)."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from plots.style import line_style, looks, new_figure
from plots.tables import Tables
from plots.times import paper_plans
from suite.speed.paper import PLANS
from suite.speed.published import largest_gain
from suite.words import number

ORDER = 86
TITLE = "Speed-up of LAGS-SGD over bandwidth, predicted"
MISSING = "no iteration times were predicted over a range of bandwidths"
_SELECTIONS = {"published": "the authors' selection", "ours": "our selection"}
_WORKERS = 16


def draw(tables: Tables) -> Figure | None:
    """A row of panels a model, a column a cost of selection; bold lines are 16 workers, faint ones fewer and more."""
    rows = _speedups(tables)
    if rows.empty:
        return None
    models, selections = list(rows.model.unique()), list(rows.selection.unique())
    figure = new_figure(TITLE, 1.2 + 1.75 * len(models))
    grid = figure.subplots(len(models), len(selections), sharex=True, sharey="row", squeeze=False)
    for model, line in zip(models, grid, strict=True):
        values = rows[rows.model == model][["dense", "slgs"]]
        limits = 0.92 * min(values.min().min(), 0.9), 1.1 * values.max().max()
        for selection, panel in zip(selections, line, strict=True):
            _panel(panel, rows[(rows.model == model) & (rows.selection == selection)], *limits)
            panel.set_title(f"{model}, {_SELECTIONS[selection]}")
        line[0].set_ylabel("Times as fast")
    for panel in grid[-1]:
        panel.set_xlabel("Bandwidth of a link (Gb/s)")
    over, limit = _marks()
    figure.legend(handles=[*over.values(), limit, Patch(color="#eeeeee", label="LAGS-SGD is the slower one")],
                  loc="outside lower center", ncols=2, handlelength=2.6)  # fmt: skip
    return figure


def _marks() -> tuple[dict[str, Line2D], Line2D]:
    """The legend's line of each method that LAGS-SGD is compared with, and that of S_max."""
    look_of, over = looks([]), {}
    for method, text in (("dense", "over dense, merged"), ("slgs", "over SLGS-SGD")):
        look = look_of[method]
        over[method] = Line2D([], [], color=look.colour, linestyle=line_style(look), marker=look.marker, label=text)
    return over, Line2D([], [], color=look_of["slgs"].colour, linewidth=1, linestyle=":", label="S_max, exchange")


def _panel(panel: Axes, rows: pd.DataFrame, low: float, high: float) -> None:
    over, limit = _marks()
    for workers, of in rows.groupby("workers"):
        bold = workers == _WORKERS
        for method, mark in over.items():
            panel.plot(
                of.bandwidth, of[method], color=mark.get_color(), linestyle=mark.get_linestyle(),
                marker=mark.get_marker() if bold else None, linewidth=1.7 if bold else 0.7, alpha=1 if bold else 0.45,
                zorder=3 if bold else 2,
            )  # fmt: skip
        if bold:
            panel.plot(of.bandwidth, of.limit, color=limit.get_color(), linestyle=":", linewidth=1)
    panel.axhspan(low, 1, color="#eeeeee", linewidth=0, zorder=0)
    panel.axhline(1, color="#4a4a4a", linewidth=0.9, zorder=1)
    panel.set_xscale("log")
    panel.set_yscale("log")
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= tick <= high]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.set_xticks(sorted(rows.bandwidth.unique()))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_locator(NullLocator())
    panel.set_ylim(low, high)


def _speedups(tables: Tables) -> pd.DataFrame:
    """model, selection, workers, bandwidth; `dense` and `slgs`: times as fast LAGS-SGD is as they; `limit`: S_max with
    the exchange of SLGS-SGD for communication."""
    keys = ["model", "selection", "workers", "bandwidth"]
    parts = []
    for selection in _SELECTIONS:
        rows = paper_plans(tables, "sweep", selection)
        if rows.empty:
            continue
        by_method = rows.pivot_table(index=keys, columns="method", values="iteration_s", sort=False)
        slgs = rows[rows.method == "slgs"].set_index(keys)
        limit = [largest_gain(*costs) for costs in zip(slgs.forward_s, slgs.backward_s, slgs.exchange_s, strict=True)]
        found = by_method[["dense", "slgs"]].div(by_method.lags, axis=0)
        parts.append(found.assign(limit=pd.Series(limit, slgs.index)).reset_index())
    return pd.concat(parts) if parts else pd.DataFrame(columns=[*keys, "dense", "slgs", "limit"])


def _caption(tables: Tables) -> str:
    reading = (
        "How many times as fast a predicted iteration of LAGS-SGD is as one of dense S-SGD with merged messages, and "
        "as one of SLGS-SGD, over the bandwidth of every worker's link; both axes are logarithmic. Bold: 16 workers; "
        "faint: 4 to 64. In the grey region below 1 LAGS-SGD is the slower one. The dotted line is S_max, the paper's "
        "limit of what pipelining gains over SLGS-SGD, with the exchange for communication. The authors' selection "
        "takes the time they published; ours what it would on their GPU, scaled by memory bandwidth."
    )
    rows = _speedups(tables)
    parts = []
    for selection, of in rows[rows.workers == _WORKERS].groupby("selection", sort=False):
        texts = []
        for model, line in of.groupby("model", sort=False):
            line = line.sort_values("bandwidth")
            first, last = line.iloc[0], line.iloc[-1]
            texts.append(
                f"{model} {first.dense:.2f} times as fast as dense at {first.bandwidth:g} Gb/s and {last.dense:.2f} "
                f"times at {last.bandwidth:g} Gb/s, {_even(tables, model, selection)}"
            )
        parts.append(f"With {_SELECTIONS[selection]} and {_WORKERS} workers: {'; '.join(texts)}.")
    return "\n".join([reading, *parts])


def _even(tables: Tables, model: str, selection: str) -> str:
    """From which bandwidth on dense is the faster one."""
    rows = tables.crossings
    rows = rows[(rows.model == model) & (rows.selection == selection) & (rows.workers == _WORKERS)]
    rows = rows[(rows.plan_against == PLANS["dense"]) & (rows.ratio == 1.0)]
    if rows.empty:
        return "the bandwidth at which dense takes over was not searched"
    row = rows.iloc[0]
    if not pd.isna(row.bandwidth):
        return f"dense is the faster one above {number(row.bandwidth, 2)} Gb/s"
    return "dense is never the faster one" if row.lowest_ratio >= 1 else "dense is always the faster one"


CAPTION = _caption

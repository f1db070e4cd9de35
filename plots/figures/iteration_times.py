"""What an iteration consists of on 16 hosts: published, predicted and emulated, method by method."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.style import new_figure
from plots.tables import Tables
from plots.times import CELL, milliseconds, paper_plans
from suite.timeline.draw import PHASE_COLOURS
from suite.words import listing, method_label, network_name

ORDER = 80
TITLE = "Iteration times on a network: published, predicted, emulated"
MISSING = "no iteration times were predicted"
_SOURCES = ("published", "predicted", "emulated")
_PHASES = ("forward", "backward", "select")
# Dense bars this much longer than the sparse ones would leave these no room.
_CUT = 2.2


def draw(tables: Tables) -> Figure | None:
    """A row of panels a model, a column a network; stacked bars in milliseconds, a group a method, a bar a source."""
    rows = tables.iteration_times
    if rows.empty:
        return None
    phases = paper_plans(tables, "times").set_index(CELL)
    models, networks = list(rows.model.unique()), list(rows.network.unique())
    figure = new_figure(TITLE, 0.8 + 1.75 * len(models))
    grid = figure.subplots(len(models), len(networks), sharey=True, squeeze=False)
    for model, line in zip(models, grid, strict=True):
        for network, panel in zip(networks, line, strict=True):
            of = rows[(rows.model == model) & (rows.network == network)]
            _bars(panel, of, phases)
            panel.set_title(f"{model}, {network_name(network)}")
    for panel in grid[-1]:
        panel.set_xlabel("Milliseconds an iteration")
    handles, names = grid[0, 0].get_legend_handles_labels()
    shown = dict(zip(names, handles, strict=True))
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=len(shown))
    return figure


def _bars(panel: Axes, rows: pd.DataFrame, phases: pd.DataFrame) -> None:
    """One panel: the bars of each method in turn, and what each takes in all."""
    sparse = rows[rows.method != "dense"][[f"{source}_s" for source in _SOURCES]].max().max()
    longest = rows[[f"{source}_s" for source in _SOURCES]].max().max()
    cut = longest > _CUT * sparse
    limit = 1e3 * (1.45 * sparse if cut else 1.36 * longest)
    ticks = {}
    for group, (_, row) in enumerate(rows.iterrows()):
        known = phases.loc[(row.model, row.network, row.method)]
        for place, source in enumerate(_SOURCES):
            y = 3.6 * group + place
            ticks[y] = f"{method_label(row.method)}  {source}" if place == 0 else source
            total = row[f"{source}_s"]
            if pd.isna(total):
                panel.text(0.008 * limit, y, "–", va="center", fontsize=8)
                continue
            foot = 0.0
            for phase, seconds in _stack(known, total):
                panel.barh(
                    y, 1e3 * seconds, left=1e3 * foot, height=0.84, color=PHASE_COLOURS[phase], edgecolor="white",
                    linewidth=0.6, label=phase,
                )  # fmt: skip
                foot += seconds
            beyond = 1e3 * total > limit
            panel.text(
                0.985 * limit if beyond else 1e3 * total + 0.012 * limit,
                y,
                f"{milliseconds(total)} →" if beyond else milliseconds(total),
                ha="right" if beyond else "left",
                va="center",
                fontsize=8,
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"} if beyond else None,
            )
    panel.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    panel.set_ylim(max(ticks) + 0.8, -0.8)
    panel.set_xlim(0, limit)
    panel.grid(axis="y", visible=False)


def _stack(known: pd.Series, total: float) -> Iterator[tuple[str, float]]:
    """The phases of an iteration of `total` seconds: computation and selection are known, the rest is exchange."""
    left = total
    for phase in _PHASES:
        seconds = min(left, known[f"{phase}_s"])
        left -= seconds
        yield phase, seconds
    yield "exchange", left


def _caption(tables: Tables) -> str:
    reading = (
        "Milliseconds of one iteration with 16 workers, without the update. Forward, backward and selection are the "
        "authors' times of their GPUs; exchange is what an iteration takes beyond them, the part that overlap does not "
        "hide. Published: the authors' totals, for 1 GbE only, those of dense recalled and unverified. Predicted: from "
        "the timeline model. Emulated: the median of real Horovod iterations between network hosts on this kind of "
        "link. Dense and LAGS-SGD merge their messages. A bar that ends in an arrow runs out of its panel."
    )
    parts = []
    for (model, network), of in tables.iteration_times.groupby(["model", "network"], sort=False):
        sources = [source for source in _SOURCES if of[f"{source}_s"].notna().any()]
        methods = listing(
            f"{method_label(row.method)} {' / '.join(milliseconds(row[f'{source}_s']) for source in sources)}"
            for _, row in of.iterrows()
        )
        parts.append(f"{model}, {network_name(network)} ({' / '.join(sources)}): {methods}.")
    return "\n".join([reading, *parts])


CAPTION = _caption

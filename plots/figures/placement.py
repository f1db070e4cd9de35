"""The learning rate outside and inside of the accumulation: what happens where it falls."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plots.style import Look, line_style, looks, metric, new_figure
from plots.tables import Tables
from suite.words import listing, plural

ORDER = 65
TITLE = "Learning rate outside or inside of the accumulation"
MISSING = "no method of this profile trains past a fall of its learning rate with both placements"
_INSIDE = Look("#cc79a7", "v", (4, 1.5))
_SMOOTHED = 40  # points a curve keeps; the loss of single iterations scatters


def draw(tables: Tables) -> Figure | None:
    """A row an experiment: training loss by iteration around the first fall of the rate, test metric by epoch."""
    studies = _studies(tables)
    if not studies:
        return None
    figure = new_figure(TITLE, 0.4 + 3.1 * len(studies))
    look_of = looks(tables.runs.method_name)
    for part, (name, fall) in zip(figure.subfigures(len(studies), 1, squeeze=False).flat, studies.items(), strict=True):
        part.suptitle(tables.title(name), x=0.01, ha="left", fontsize=10.5, fontweight="normal")
        left, right = part.subplots(1, 2)
        runs = tables.runs[tables.runs.experiment == name]
        shown = metric(runs.metric.iloc[0])
        for method, of in runs.groupby("method", sort=False):
            inside = of.lr_placement.iloc[0] == "inside"
            look = _INSIDE if inside else look_of[of.method_name.iloc[0]]
            label = f"{of.label.iloc[0]}, rate {of.lr_placement.iloc[0]}"
            _curve(left, _around(tables, name, method, fall), "loss", look, label, smooth=True)
            epochs = _of(tables.epochs, name, method)
            _curve(right, epochs.assign(y=epochs.value * shown.scale), "y", look, label)
        for axes in (left, right):
            axes.axvline(fall, color="#333333", linewidth=1, linestyle=(0, (4, 2)))
            axes.set_xlabel("Iteration")
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        left.set_ylabel("Training loss (nats)")
        right.set_ylabel(shown.axis)
        handles, names = right.get_legend_handles_labels()
        part.legend(handles, names, loc="outside lower center", ncols=2, handlelength=2.6)
    return figure


def _curve(axes: Axes, rows: pd.DataFrame, column: str, look: Look, label: str, smooth: bool = False) -> None:
    """Thin lines for seeds, their mean as a bold one."""
    for _, one in rows.groupby("seed"):
        axes.plot(one.iteration, one[column], color=look.colour, alpha=0.3, linewidth=0.8)
    mean = rows.groupby("iteration")[column].mean()
    if smooth:
        mean = mean.rolling(max(1, len(mean) // _SMOOTHED), center=True, min_periods=1).mean()
    axes.plot(mean, color=look.colour, linestyle=line_style(look), label=label)


def _studies(tables: Tables) -> dict[str, float]:
    """By experiment that trains some method with both placements: the last iteration before the rate first falls."""
    runs = tables.runs[tables.runs.density.notna() & tables.runs.final.notna()]
    found = {}
    for name, of in runs.groupby("experiment", sort=False):
        if of.groupby("method_name").lr_placement.nunique().max() < 2:
            continue
        losses = tables.losses[tables.losses.experiment == name]
        first = losses[(losses.method == losses.method.iloc[0]) & (losses.seed == losses.seed.iloc[0])]
        falls = first.iteration[first.lr.shift(-1) < 0.99 * first.lr]
        if len(falls):
            found[name] = float(falls.iloc[0])
    return found


def _of(rows: pd.DataFrame, experiment: str, method: str) -> pd.DataFrame:
    return rows[(rows.experiment == experiment) & (rows.method == method)]


def _around(tables: Tables, experiment: str, method: str, fall: float) -> pd.DataFrame:
    """Losses of the epoch before the fall and of the one after."""
    rows = _of(tables.losses, experiment, method)
    last = rows.epoch[rows.iteration <= fall].max()
    return rows[rows.epoch.between(last, last + 1)]


def _caption(tables: Tables) -> str:
    sentences = []
    for name, fall in _studies(tables).items():
        runs = tables.runs[tables.runs.experiment == name]
        shown, parts = metric(runs.metric.iloc[0]), []
        for method, of in runs.groupby("method", sort=False):
            rows = _around(tables, name, method, fall)
            before, after = (rows.loc[part, "loss"].mean() for part in (rows.iteration <= fall, rows.iteration > fall))
            parts.append(
                f"{of.lr_placement.iloc[0]}: training loss {before:.3f} in the epoch before and {after:.3f} in the one "
                f"after, final {shown.text(of.final.mean())}"
            )
        sentences.append(f"{tables.title(name)} ({plural(runs.seed.nunique(), 'seed')}): {listing(parts)}.")
    reading = (
        "The residual holds gradients that wait to be sent. With the rate outside, as in the authors' code, it holds "
        "plain gradients, and what was accumulated before the rate falls (dashed) is replayed at the new, lower one. "
        "With the rate inside, as the paper writes it, it holds gradients times their rate, so old residual is "
        "replayed at the old, higher rate until it has drained. While the rate is constant the two are the same up to "
        "rounding."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

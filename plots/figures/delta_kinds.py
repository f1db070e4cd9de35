"""Delta by kind of layer: its distribution, and how often and why it lies above 1."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.style import looks, new_figure
from plots.tables import Tables
from suite.record.kinds import KINDS
from suite.words import listing, plural

ORDER = 32
TITLE = "Where the assumption fails: delta by kind of layer"
MISSING = "no run that selects layer by layer logged the assumption"
_QUANTILES = {
    "whislo": "delta_q05", "q1": "delta_q25", "med": "delta_median", "q3": "delta_q75", "whishi": "delta_q95",
}  # fmt: skip
_SUMS = ["points", "above_one", "opposed", "overshoot", "short"]
_ROW = ["kind", "k_is_one"]


def draw(tables: Tables) -> Figure | None:
    """A panel an experiment: a box a kind (quartiles, 5% to 95%, the highest as a cross), counts above 1 beside it."""
    groups = _groups(tables)
    if not groups:
        return None
    heights = [0.9 + 0.34 * len(rows) for rows in groups.values()]
    figure = new_figure(TITLE, 0.4 + sum(heights))
    look_of = looks(tables.runs.method_name)
    axes = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ((experiment, method), rows), panel in zip(groups.items(), axes, strict=True):
        label = tables.runs.loc[(tables.runs.experiment == experiment) & (tables.runs.method == method), "label"].iloc[
            0
        ]
        panel.set_title(f"{tables.title(experiment)}: {label}")
        _boxes(panel, rows, look_of[tables.method_name(experiment, method)].colour)
    axes[-1].set_xlabel("delta  (no unit)")
    return figure


def _boxes(panel: Axes, rows: pd.DataFrame, colour: str) -> None:
    places = range(len(rows))
    stats = [{name: row[column] for name, column in _QUANTILES.items()} | {"fliers": []} for _, row in rows.iterrows()]
    panel.bxp(
        stats, positions=places, orientation="horizontal", widths=0.55, showfliers=False, patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.35, "edgecolor": colour}, medianprops={"color": "#222222"},
        whiskerprops={"color": colour}, capprops={"color": colour},
    )  # fmt: skip
    panel.plot(rows.delta_max, places, "x", color="#b2182b", markersize=5, linestyle="none")
    panel.axvline(1, color="#333333", linewidth=1, linestyle=(0, (4, 2)))
    panel.set_yticks(list(places), [_name(row) for _, row in rows.iterrows()])
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.grid(axis="y", visible=False)
    beside = panel.secondary_yaxis("right")
    counts = [f"{row.above_one:,} of {row.points:,} ({_share(row)})" for _, row in rows.iterrows()]
    beside.set_yticks(list(places), counts, fontsize=8.5)
    beside.tick_params(length=0)
    beside.spines["right"].set_visible(False)
    beside.set_ylabel("values above 1", fontsize=9)


def _groups(tables: Tables) -> dict[tuple[str, str], pd.DataFrame]:
    """By experiment and layer-wise method: a row a kind over all seeds, in the order of KINDS.

    Quantiles are means over the seeds' own quantiles, counts are sums, the maximum is that of all.
    """
    rows = tables.delta_by_kind
    rows = rows[rows.kind != "whole gradient"]
    chosen = set(tables.comparisons) or set(rows.experiment)
    found = {}
    for key, of in rows[rows.experiment.isin(chosen)].groupby(["experiment", "method"], sort=False):
        how = dict.fromkeys(_SUMS, "sum") | dict.fromkeys(_QUANTILES.values(), "mean")
        how |= {"delta_max": "max", "segments": "first", "smallest_d": "min", "largest_d": "max"}
        of = of.assign(kind=pd.Categorical(of.kind, KINDS, ordered=True))
        found[key] = of.groupby(_ROW, observed=True).agg(how).reset_index()
    return found


def _name(row: pd.Series) -> str:
    return f"{row.kind}{', k = 1' if row.k_is_one else ''} ({row.segments})"


def _sizes(row: pd.Series) -> str:
    sizes = dict.fromkeys((f"{row.smallest_d:,.0f}", f"{row.largest_d:,.0f}"))
    return f"{' to '.join(sizes)} entries"


def _share(row: pd.Series) -> str:
    return f"{row.above_one / row.points:.2%}"


def _caption(tables: Tables) -> str:
    sentences = []
    for (experiment, _), rows in _groups(tables).items():
        seeds = tables.delta_by_kind.loc[tables.delta_by_kind.experiment == experiment, "seed"].nunique()
        above = rows[rows.above_one > 0]
        parts = [
            f"{row.kind}{' sending one entry' if row.k_is_one else ''} ({_sizes(row)}) "
            f"{row.above_one:,} of {row.points:,}, at most {row.delta_max:.3f}"
            for _, row in above.iterrows()
        ]
        text = f"{tables.title(experiment)} ({plural(seeds, 'seed')}): "
        if not parts:
            sentences.append(f"{text}no value lies above 1.")
            continue
        total = above[_SUMS].sum()
        causes = {
            "what was sent pointed against the mean": total.opposed,
            "it overshot the mean": total.overshoot,
            "it gained less than random entries would": total.short,
        }
        why = listing(f"{count / total.above_one:.0%} because {cause}" for cause, count in causes.items())
        sentences.append(f"{text}above 1 lie {listing(parts)}; {why}.")
    reading = (
        "Boxes are quartiles of delta over segments and iterations, whiskers its 5th and 95th percentile (means over "
        "seeds), crosses the highest value of all seeds; the number of segments is in brackets. Segments that send a "
        "single entry are apart. Above 1 (dashed) k random entries would have left less than the workers' own largest "
        "ones. Causes are computed for every value from delta and the norm ratio; docs/results.md explains them."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

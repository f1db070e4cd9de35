"""The paper's assumption at every iteration: delta of each segment, with its line at 1."""

from typing import NamedTuple

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from plots.style import line_style, looks, new_figure
from plots.tables import Tables
from suite.record.kinds import KINDS, layer_kinds
from suite.words import plural

ORDER = 30
TITLE = "Is the assumption met? Delta of every layer"
MISSING = "no run that selects layer by layer logged the assumption"
_ALL_NAMED = 24  # up to so many segments each row of the heat map carries its own name


class _Block(NamedTuple):
    """One layer-wise method of one experiment."""

    experiment: str
    method: str
    label: str
    seed: int
    rows: pd.DataFrame  # of the first seed: iteration, segment, position, d, delta


def draw(tables: Tables) -> Figure | None:
    """A block an experiment: heat map segment x iteration above, median and maximum over segments below."""
    blocks = _blocks(tables)
    if not blocks:
        return None
    heights = [0.6 + 0.055 * max(block.rows.segment.nunique(), 28) for block in blocks]
    figure = new_figure(TITLE, 0.4 + sum(heights) + 2.0 * len(blocks))
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=[high + 2.0 for high in heights]).flat
    for block, part, high in zip(blocks, parts, heights, strict=True):
        part.suptitle(
            f"{tables.title(block.experiment)}: {block.label}, seed {block.seed}",
            x=0.01,
            ha="left",
            fontsize=10.5,
            fontweight="normal",
        )
        upper, lower = part.subplots(2, 1, sharex=True, height_ratios=[high, 1.4])
        _heat_map(upper, block.rows)
        _lines(lower, block, tables)
    return figure


def _blocks(tables: Tables) -> list[_Block]:
    rows = tables.assumption_iterations
    chosen = set(tables.comparisons) or set(rows.experiment)
    rows = rows[rows.experiment.isin(chosen) & rows.delta.notna()]
    return [
        _Block(experiment, method, label, of.seed.min(), of[of.seed == of.seed.min()])
        for (experiment, method, label), of in rows.groupby(["experiment", "method", "label"], sort=False)
        if of.segment.nunique() > 1
    ]


def _heat_map(axes: Axes, rows: pd.DataFrame) -> None:
    segments = rows.drop_duplicates("segment")[["segment", "position", "d"]]
    segments = segments.assign(kind=pd.Categorical(layer_kinds(segments.segment, segments.d), KINDS, ordered=True))
    segments = segments.sort_values(["kind", "position"]).reset_index(drop=True)
    grid = rows.pivot(index="segment", columns="iteration", values="delta").loc[segments.segment]
    reach = max(float((grid - 1).abs().stack().quantile(0.99)), 0.01)
    colours = sns.color_palette("vlag", as_cmap=True).with_extremes(bad="#c8c8c8")
    # Rasterised: ten thousand cells as vector paths would make the SVG slow and large.
    mesh = axes.pcolormesh(
        grid.columns,
        range(len(grid)),
        grid.to_numpy(),
        cmap=colours,
        norm=Normalize(1 - reach, 1 + reach),
        shading="nearest",
        rasterized=True,
    )
    axes.set_ylim(len(grid) - 0.5, -0.5)
    axes.grid(False)
    groups = segments.groupby("kind", observed=True)
    for _, of in groups:
        if of.index[0]:
            axes.axhline(of.index[0] - 0.5, color="white", linewidth=2)
    if len(grid) <= _ALL_NAMED:
        axes.set_yticks(range(len(grid)), segments.segment, fontsize=8)
    else:
        middles = [of.index.to_numpy().mean() for _, of in groups]
        axes.set_yticks(middles, [f"{kind}\n({len(of)})" for kind, of in groups])
        axes.tick_params(axis="y", length=0)
    bar = axes.figure.colorbar(mesh, ax=axes, extend="both", pad=0.015, aspect=24)
    bar.set_label("delta")
    bar.ax.axhline(1, color="#333333", linewidth=1)


def _lines(axes: Axes, block: _Block, tables: Tables) -> None:
    look_of = looks(tables.runs.method_name)
    look = look_of[tables.method_name(block.experiment, block.method)]
    over = block.rows.groupby("iteration").delta.agg(["median", "max"])
    axes.plot(over["max"], color="#b2182b", linewidth=1.0, label="highest segment")
    axes.plot(over["median"], color=look.colour, label="median segment")
    rows = tables.assumption_iterations
    rows = rows[(rows.experiment == block.experiment) & (rows.seed == block.seed) & (rows.method != block.method)]
    for (method, label), of in rows.groupby(["method", "label"], sort=False):
        other = look_of[tables.method_name(block.experiment, method)]
        if of.segment.nunique() == 1:
            axes.plot(
                of.iteration,
                of.delta,
                color=other.colour,
                linestyle=line_style(other),
                linewidth=1.2,
                label=f"{label}, whole gradient",
            )
    axes.axhline(1, color="#333333", linewidth=1, linestyle=(0, (4, 2)))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.3 * (high - low))
    logged = _logged(block, tables)
    points = int(logged.points.sum())
    axes.set_title(f"Above 1: {logged.above_one.sum() / points:.2%} of {points:,} points (all seeds)", fontsize=9.5)
    axes.legend(loc="upper left", ncols=3, fontsize=8, borderaxespad=0.1, handlelength=2, columnspacing=1.2)
    axes.set(xlabel="Iteration", ylabel="delta")


def _logged(block: _Block, tables: Tables) -> pd.DataFrame:
    """The block's rows of the table by epoch: all seeds, every logged iteration."""
    rows = tables.assumption
    return rows[(rows.experiment == block.experiment) & (rows.method == block.method)]


def _caption(tables: Tables) -> str:
    sentences = []
    for block in _blocks(tables):
        logged = _logged(block, tables)
        above, points, worst = int(logged.above_one.sum()), int(logged.points.sum()), ""
        if above:
            segment = logged.groupby("segment").above_one.sum().idxmax()
            worst = f", most often in {segment}; the highest value is {logged.delta_max.max():.3f}"
        sentences.append(
            f"{tables.title(block.experiment)} ({plural(logged.seed.nunique(), 'seed')}, "
            f"{plural(logged.segment.nunique(), 'segment')}): {above:,} of {points:,} points "
            f"({above / points:.2%}) lie above 1{worst}."
        )
    reading = (
        "Delta compares what top-k leaves out with what a random choice of as many entries would leave out on average; "
        "it has no unit. The paper's convergence proof assumes delta of at most 1 (blue); above 1 (red) the assumption "
        "fails at that point. A row is one parameter tensor, grouped by kind of layer and within a group from the "
        "model's input (top) to its output; grey marks iterations without a value. Heat map and lines show the first "
        "seed, thinned to at most 500 iterations; the share above 1 counts every logged point of every seed."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

"""Test metric against the bytes one worker has sent."""

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from plots.style import legend_below, line_style, log_where_wide, metric, panels
from plots.tables import Tables
from suite.words import amount_of_bytes, listing, plural

ORDER = 20
TITLE = "Test metric against bytes sent"
MISSING = "no experiment of this profile runs two or more methods, or ways of one, side by side"


def draw(tables: Tables) -> Figure | None:
    """One panel an experiment: a thin line a seed, the mean over seeds as a bold line that ends in a marker."""
    experiments = _experiments(tables)
    if not experiments:
        return None
    figure, axes = panels(TITLE, [tables.title(name) for name in experiments], 3.7)
    for experiment, panel in zip(experiments, axes, strict=True):
        epochs = tables.with_series(tables.epochs[tables.epochs.experiment == experiment])
        shown = metric(epochs.metric.iloc[0])
        for (series, name), of in epochs.groupby(["series", "look"], sort=False):
            look = tables.looks[name]
            for _, one in of.groupby("seed"):
                panel.plot(one.bytes_sent, one.value * shown.scale, color=look.colour, alpha=0.3, linewidth=0.8)
            mean = of.groupby("epoch")[["bytes_sent", "value"]].mean()
            panel.plot(
                mean.bytes_sent,
                mean.value * shown.scale,
                color=look.colour,
                linestyle=line_style(look),
                marker=look.marker,
                markevery=[-1],
                markersize=7,
                label=series,
            )
        log_where_wide(panel.xaxis, epochs.bytes_sent, 10, EngFormatter("B"))
        panel.set(xlabel="Sent by one worker since the start", ylabel=shown.axis)
        if not shown.higher_is_better:
            log_where_wide(panel.yaxis, epochs.value, 5)
        legend_below(panel)
    return figure


def _experiments(tables: Tables) -> list[str]:
    """Those of more than one worker."""
    sent = tables.runs.groupby("experiment").bytes_sent.max()
    return [name for name in tables.side_by_side if sent[name] > 0]


def _caption(tables: Tables) -> str:
    parts = []
    for experiment in _experiments(tables):
        runs = tables.runs[tables.runs.experiment == experiment]
        total = runs.groupby(tables.told_apart_by(experiment), sort=False).bytes_sent.mean()
        parts.append(
            f"{tables.title(experiment)} ({plural(runs.seed.nunique(), 'seed')}): in all, one worker sent "
            f"{listing(f'{amount_of_bytes(count)} with {label}' for label, count in total.items())}."
        )
    reading = (
        "Horizontal, logarithmic where it spans more than ten times: bytes of gradients one worker has sent since the "
        "start, counted as a ring exchange sends them, also where the workers share a process. A dense all-reduce "
        "sends almost two gradients; a sparse all-gather sends a worker's entries, value and index, once for each "
        "other worker, so that its cost grows with the number of workers. Each line follows training from the first "
        "epoch's end to the last, marked; thin lines are single seeds, bold ones their mean. Further left is cheaper."
    )
    return "\n".join([reading, *parts])


CAPTION = _caption

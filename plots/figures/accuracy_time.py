"""Test metric against training time: measured epochs, predicted iterations."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.figure import Figure

from plots.style import legend_below, line_style, log_where_wide, looks, metric, panels, series_text
from plots.tables import Tables
from suite.record.reach import spent_until, training_time
from suite.words import listing, network_name, plural

ORDER = 15
TITLE = "Test metric against training time"
MISSING = "no experiment that runs two or more methods side by side has predicted iteration times"
_SHARES = (0.9, 0.95, 0.99)  # of dense's final metric
_UNITS = ((2 * 86400, 86400, "days"), (2 * 3600, 3600, "hours"), (2 * 60, 60, "minutes"), (0, 1, "seconds"))


def draw(tables: Tables) -> Figure | None:
    """One panel an experiment and network: mean over seeds, a band from the lowest to the highest seed."""
    cells = list(_cells(tables))
    if not cells:
        return None
    names = [f"{tables.title(experiment)}\n{network_name(network)}" for experiment, network, _ in cells]
    figure, axes = panels(TITLE, names, 3.7)
    look_of = looks(tables.runs.method_name)
    for (_, _, epochs), panel in zip(cells, axes, strict=True):
        shown = metric(epochs.metric.iloc[0])
        size, unit = _unit(epochs.time.max())
        for (label, density, name), of in epochs.groupby(["label", "density", "method_name"], sort=False, dropna=False):
            look = look_of[name]
            over = of.assign(value=of.value * shown.scale, time=of.time / size).groupby("time").value
            mean = over.mean()
            panel.fill_between(mean.index, over.min(), over.max(), color=look.colour, alpha=0.18, linewidth=0)
            panel.plot(
                mean, color=look.colour, linestyle=line_style(look), marker=look.marker, markevery=[-1], markersize=7,
                label=series_text(label, density),
            )  # fmt: skip
        panel.set(xlabel=f"Training time ({unit})", ylabel=shown.axis)
        log_where_wide(panel.xaxis, epochs.time / size, 30)
        if not shown.higher_is_better:
            log_where_wide(panel.yaxis, epochs.value, 5)
        legend_below(panel)
    return figure


def _cells(tables: Tables) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Experiment, network and the epochs of its runs with their `time` in seconds, where dense's is known, too."""
    for experiment in tables.comparisons:
        times = tables.run_times[tables.run_times.experiment == experiment]
        for network, of in times.groupby("network", sort=False):
            epochs = training_time(tables.epochs[tables.epochs.experiment == experiment], of)
            if epochs.method.nunique() >= 2:
                yield experiment, network, epochs


def _unit(longest: float) -> tuple[float, str]:
    """Seconds of the unit in which `longest` seconds are read best, and its name."""
    return next((size, name) for least, size, name in _UNITS if longest >= least)


def _reached(epochs: pd.DataFrame, share: float) -> str:
    """When each method gets to this share of dense's final metric, seed by seed."""
    size, unit = _unit(epochs.time.max())
    goals = {}
    for seed, of in epochs[epochs.method_name == "dense"].groupby("seed"):
        final = of.sort_values("epoch").value.iloc[-1]
        goals[seed] = final * share if metric(of.metric.iloc[0]).higher_is_better else final / share
    parts = []
    for label, of in epochs.groupby("label", sort=False):
        runs = [own for seed, own in of.groupby("seed") if seed in goals]
        found = [spent_until(own, goals[own.seed.iloc[0]], "time") for own in runs]
        times = pd.Series(found, dtype=float).replace(float("inf"), float("nan"))
        missed = int(times.isna().sum())
        text = "never" if missed == len(times) else f"{times.mean() / size:.3g} {unit}"
        some = f" (never in {missed} of {plural(len(times), 'seed')})" if 0 < missed < len(times) else ""
        parts.append(f"{label} {text}{some}")
    return f"{share:.0%}: {listing(parts)}"


def _caption(tables: Tables) -> str:
    sentences, sources = [], {}
    for experiment, network, epochs in _cells(tables):
        sources |= dict.fromkeys(tables.run_times.loc[tables.run_times.experiment == experiment, "source"].dropna())
        head = f"{tables.title(experiment)}, {network_name(network)} ({plural(epochs.seed.nunique(), 'seed')})"
        if (epochs.method_name == "dense").any():
            reached = "; ".join(_reached(epochs, share) for share in _SHARES)
            sentences.append(
                f"{head}, time to shares of dense's final {epochs.metric.iloc[0].replace('_', ' ')}: {reached}."
            )
        else:
            sentences.append(f"{head}: a dense run to compare with is missing.")
    reading = (
        "Time is that of measured iterations if each took what is predicted for 16 hosts on the network: nothing is "
        "timed here. The test metric is measured after every epoch; lines are means over seeds, bands reach from the "
        "lowest to the highest, and the marker is where training ends. Further left at equal height is faster; a share "
        "of a perplexity is read as dense's final one divided by it."
    )
    return "\n".join([reading, *sentences, *([f"Iteration times: {listing(sources)}"] if sources else [])])


CAPTION = _caption

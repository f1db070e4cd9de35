"""Draws advice: iteration time over bandwidth."""

from pathlib import Path

from matplotlib.figure import Figure

from suite.errors import ConfigError
from suite.speed.advice import Advice
from suite.speed.predictions import LAGS_ADAPTIVE
from suite.speed.sweep import GRID, RANGE

# Paul Tol's muted palette; LAGS with adaptive ratios lies on LAGS where it costs nothing, so it is dashed.
_COLOURS = ("#882255", "#ddaa33", "#4477aa", "#117733")


def draw_advice(path: Path, advice: Advice) -> None:
    """Write a figure of a line a method, with the network marked and the region shaded in which dense is best.

    Raises:
        ConfigError: bandwidth changes nothing on this network, or `path` cannot be written.
    """
    if advice.changes is None:
        raise ConfigError(
            "bytes cost nothing on this network, so there is no bandwidth to draw over; leave --figure out"
        )
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for (title, seconds), colour in zip(advice.curves.items(), _COLOURS, strict=True):
        axes.plot(GRID, seconds, label=title, color=colour, linestyle="--" if title == LAGS_ADAPTIVE else "-")
    for number, (low, high) in enumerate(_dense_regions(advice)):
        axes.axvspan(low, high, color="#dddddd", zorder=0, label="dense is best" if number == 0 else None)
    axes.axvline(advice.gigabits, color="black", linewidth=1, linestyle=":", label=f"here: {advice.gigabits:.3g} Gb/s")
    axes.set(xscale="log", yscale="log", xlabel="Bandwidth of each worker's link, Gb/s", ylabel="Seconds an iteration")
    axes.set_title(f"{advice.subject.name}, {advice.network.workers} workers (predicted)", loc="left", fontsize=10)
    axes.grid(visible=True, which="both", alpha=0.2)
    figure.legend(loc="outside right upper", frameon=False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # matplotlib's word on an unknown suffix is a ValueError
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise ConfigError(f"the figure {path} cannot be written ({reason})") from error


def _dense_regions(advice: Advice) -> list[tuple[float, float]]:
    """Gb/s from and to which dense is best."""
    if not advice.changes:
        return [RANGE] if advice.best == "dense" else []
    edges = [RANGE[0], *(change.bandwidth for change in advice.changes), RANGE[1]]
    answers = [change.below for change in advice.changes] + [advice.changes[-1].above]
    return [(edges[i], edges[i + 1]) for i, answer in enumerate(answers) if answer == "dense"]

"""Draws timelines, predicted or traced: a lane of computation above a lane of the network."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from suite.errors import ConfigError
from suite.timeline.timeline import Event, Timeline

# Paul Tol's muted palette, told apart without red or green; forward and backward are the shades of computation.
PHASE_COLOURS = {
    "compute": "#88ccee",
    "forward": "#c4e6f6",
    "backward": "#88ccee",
    "select": "#ddcc77",
    "start": "#e6b3ba",
    "exchange": "#cc6677",
    "apply": "#44aa99",
    "measure": "#eeeeee",
    "other": "#aaaaaa",
}
_LANES = {"computation": 1, "network": 0}


def draw_lanes(axes: Axes, events: Iterable[Event]) -> list[Patch]:
    """Draw events into axes, in milliseconds; returns a legend's patch for each phase among them.

    Phases without a colour, such as waiting, are left blank.
    """
    events = list(events)
    span = 1e3 * Timeline(tuple(events)).iteration
    # In the palette's order, so that selection lies over the back-propagation it interrupts.
    phases = [phase for phase in PHASE_COLOURS if any(event.phase == phase for event in events)]
    for phase in phases:
        lane = _LANES["network" if phase == "exchange" else "computation"]
        bars = [(1e3 * e.start, 1e3 * (e.end - e.start)) for e in events if e.phase == phase]
        colour = PHASE_COLOURS[phase]
        # White edges part neighbouring messages; they would swallow a thin bar, which gets one of its own colour.
        edges = ["white" if phase == "exchange" and width > 0.01 * span else colour for _, width in bars]
        axes.broken_barh(bars, (lane - 0.36, 0.72), facecolor=colour, edgecolors=edges, linewidth=0.4)
    axes.set_yticks(list(_LANES.values()), list(_LANES))
    axes.set_ylim(-0.5, 1.5)
    axes.grid(axis="y", visible=False)
    return [Patch(color=PHASE_COLOURS[phase], label=phase) for phase in phases]


def caption(timeline: Timeline) -> str:
    """How long the iteration is and how much of the exchange it hides."""
    return (
        f"{1e3 * timeline.iteration:.1f} ms; {timeline.hidden_share:.0%} of {1e3 * timeline.exchange_total:.1f} ms "
        "of exchange hidden"
    )


def draw_timelines(path: Path, timelines: Mapping[str, Timeline]) -> None:
    """Write a figure of one panel a timeline, all on the same time axis; ConfigError where `path` cannot be written."""
    figure = Figure(figsize=(8, 0.8 + 1.3 * len(timelines)), layout="constrained")
    panels = figure.subplots(len(timelines), 1, sharex=True, squeeze=False)[:, 0]
    patches = {}
    for axes, (title, timeline) in zip(panels, timelines.items(), strict=True):
        patches |= {patch.get_label(): patch for patch in draw_lanes(axes, timeline.events)}
        axes.set_title(f"{title}: {caption(timeline)}", loc="left", fontsize=10)
    panels[-1].set_xlabel("Milliseconds")
    figure.legend(handles=list(patches.values()), loc="outside lower center", ncols=len(patches), frameon=False)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:  # matplotlib's word on an unknown suffix is a ValueError
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise ConfigError(f"the figure {path} cannot be written ({reason})") from error

"""Timelines from rows of a table, and how figures draw them."""

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from plots.style import WIDTH
from suite.timeline import Event, Timeline
from suite.timeline.draw import PHASE_COLOURS, draw_lanes


def timeline_of(rows: pd.DataFrame) -> Timeline:
    """The events of one iteration, counted from the first of them."""
    origin = rows.start.min()
    events = zip(rows.phase, rows.event.fillna(""), rows.start - origin, rows.end - origin, strict=True)
    return Timeline(tuple(Event(*event) for event in events))


def draw_titled(figure: Figure, drawn: Iterable[tuple[Axes, str, Timeline]]) -> None:
    """Draw each timeline into its axes below its title, and one legend for all."""
    patches: dict[str, Patch] = {}
    for axes, title, timeline in drawn:
        patches |= {patch.get_label(): patch for patch in draw_lanes(axes, timeline.events)}
        axes.set_title(title)
    handles = [patches[phase] for phase in PHASE_COLOURS if phase in patches]
    figure.legend(handles=handles, loc="outside lower center", ncols=round(WIDTH))

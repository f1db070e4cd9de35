"""One emulated iteration of each method, traced, beside the predicted one."""

import pandas as pd
from matplotlib.figure import Figure

from plots.lanes import draw_titled, timeline_of
from plots.style import new_figure
from plots.tables import Tables
from plots.times import milliseconds
from suite.timeline import Timeline
from suite.words import listing, method_label, network_name

ORDER = 82
TITLE = "One emulated iteration, traced and predicted"
MISSING = "nothing was emulated, and no emulations are stored"


def draw(tables: Tables) -> Figure | None:
    """Of one model: a row of panels a network and method, traced at the left, predicted at the right."""
    pairs = _pairs(tables)
    if not pairs:
        return None
    model = _rows(tables).model.iloc[0]
    figure = new_figure(f"{TITLE}: {model}", 0.9 + 1.2 * len(pairs))
    drawn = []
    for line, ((network, method), sides) in zip(
        figure.subplots(len(pairs), 2, sharex="row", sharey=True, squeeze=False), pairs.items(), strict=True
    ):
        for panel, (kind, timeline) in zip(line, sides.items(), strict=True):
            title = f"{method_label(method)}, {network_name(network)}, {kind}\n{_length(timeline)}"
            drawn.append((panel, title, timeline))
    draw_titled(figure, drawn)
    for panel in figure.axes[-2:]:
        panel.set_xlabel("Milliseconds")
    return figure


def _length(timeline: Timeline) -> str:
    """How long the iteration and its exchange are, and how much of that is hidden; short enough for half a figure."""
    exchange = milliseconds(timeline.exchange_total)
    return f"{milliseconds(timeline.iteration)}; {timeline.hidden_share:.0%} of {exchange} hidden"


def _rows(tables: Tables) -> pd.DataFrame:
    """Events of one model, of its largest number of workers: the first one that this profile emulated itself, or else
    the first of the stored ones."""
    rows = tables.emulated_timeline[tables.emulated_timeline.selection == "published"]
    if rows.empty:
        return rows
    own = rows[rows.emulated_in != "reference"]
    rows = rows[rows.model == (rows if own.empty else own).model.iloc[0]]
    return rows[rows.workers == rows.workers.max()]


def _pairs(tables: Tables) -> dict[tuple[str, str], dict[str, Timeline]]:
    """By network and method: the traced and the predicted iteration."""
    return {
        key: {kind: timeline_of(of[of.kind == kind]) for kind in ("traced", "predicted")}
        for key, of in _rows(tables).groupby(["network", "method"], sort=False)
        if set(of.kind) == {"traced", "predicted"}
    }


def _caption(tables: Tables) -> str:
    reading = (
        "Intervals of one iteration on the first of the emulated hosts, times divided by the stretch. Upper lane: "
        "computation and selection, which take the authors' times; lower lane: messages, each from its start until it "
        "has arrived, with waiting for slower hosts. Hidden is the share of the exchange during which back-propagation "
        "is under way. Each row has its own time axis."
    )
    parts = []
    for network, of in _rows(tables).groupby("network", sort=False):
        texts = [
            f"{milliseconds(sides['traced'].iteration)} for {method_label(method)} "
            f"({milliseconds(sides['predicted'].iteration)} predicted)"
            for (name, method), sides in _pairs(tables).items()
            if name == network
        ]
        parts.append(
            f"{of.model.iloc[0]}, {of.workers.iloc[0]} workers, {network_name(network)}: the traced iteration took "
            f"{listing(texts)}."
        )
    return "\n".join([reading, *parts])


CAPTION = _caption

"""Where the time of an iteration goes in runs on several processes."""

import pandas as pd
from matplotlib.figure import Figure

from plots.style import panels
from plots.tables import Tables
from suite.timeline.draw import PHASE_COLOURS
from suite.words import listing

ORDER = 70
TITLE = "Time of one iteration on real processes"
MISSING = "this profile has no run on more than one process"
# As the bars are stacked.
_PHASES = ("compute", "select", "exchange", "apply", "other", "measure")
_TRANSPORTS = {"horovod": "Horovod", "torch": "torch.distributed"}
_SETTING = ["experiment", "workers", "processes", "transport"]


def draw(tables: Tables) -> Figure | None:
    """One panel an experiment and placement, one stacked bar a method: mean over seeds, in milliseconds."""
    times = _times(tables)
    if not times:
        return None
    figure, axes = panels(TITLE, ["\n".join(_setting_text(tables, setting)) for setting in times], 3.6)
    for by_label, panel in zip(times.values(), axes, strict=True):
        foot, total = pd.Series(0.0, by_label.index), by_label.sum(axis=1)
        for phase in by_label:
            high = by_label[phase]
            panel.bar(
                by_label.index,
                high,
                bottom=foot,
                width=0.62,
                color=PHASE_COLOURS[phase],
                label=phase,
                edgecolor="white",
                linewidth=0.8,
                hatch="////" if phase == "measure" else None,
            )
            for place, value in enumerate(high):
                if value > 0.06 * total.max():
                    middle = foot.iloc[place] + value / 2
                    panel.text(place, middle, f"{value:.0f}", ha="center", va="center", fontsize=9)
            foot = foot + high
        measured = by_label.get("measure", foot * 0)
        for place, (value, extra) in enumerate(zip(total, measured, strict=True)):
            text = f"{value:.0f} ms" + (f"\n({value - extra:.0f} without measure)" if extra >= 0.5 else "")
            panel.text(place, value + 0.015 * total.max(), text, ha="center", va="bottom", fontsize=9)
        panel.set_xticks(range(len(total)), [label.replace(" ", "\n") for label in total.index], fontsize=8)
        panel.grid(axis="x", visible=False)
        # One bar alone would fill the panel.
        panel.set_xlim(-0.5, max(len(total), 3) - 0.5)
        panel.set(ylabel="Milliseconds an iteration", ylim=(0, 1.17 * total.max()))
    handles, names = panel.get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside right center")
    return figure


def _times(tables: Tables) -> dict[tuple, pd.DataFrame]:
    """Milliseconds by method label and phase, for each experiment and placement on several processes."""
    rows = tables.phases[tables.phases.processes > 1]
    found = {}
    for setting, of in rows.groupby(_SETTING, sort=False):
        grid = 1000 * of.pivot_table(index="label", columns="phase", values="median_s", aggfunc="mean", sort=False)
        found[setting] = grid.fillna(0.0).reindex(columns=[phase for phase in _PHASES if phase in grid])
    return found


def _setting_text(tables: Tables, setting: tuple) -> tuple[str, str]:
    """The experiment and its placement, as two lines."""
    experiment, workers, processes, transport = setting
    return (
        tables.title(experiment),
        f"{workers} workers on {processes} processes, {_TRANSPORTS.get(transport, transport)}",
    )


def _verdict(grid: pd.DataFrame) -> str:
    """Who is fastest without the cost of measuring, and which phase decides."""
    paid = grid.drop(columns="measure", errors="ignore")
    total, dominant = paid.sum(axis=1), paid.idxmax(axis=1)
    text = (
        "Largest phase: "
        + listing(
            f"{dominant[label]} for {label} ({paid.loc[label, dominant[label]]:.0f} of {total[label]:.0f} ms)"
            for label in total.index
        )
        + ". "
    )
    dense = next((label for label in total.index if label.lower().startswith("dense")), None)
    for label in total.index.drop(dense, errors="ignore") if dense else ():
        change = paid.loc[label] - paid.loc[dense]
        if total[label] > total[dense]:
            gain = -min(change.min(), 0.0)
            saved = f"it saves {gain:.0f} ms of {change.idxmin()} but " if gain >= 0.5 else ""
            text += (
                f"Dense is faster than {label} here, by {total[label] - total[dense]:.0f} ms an iteration: {saved}"
                f"{change.idxmax()} takes {change.max():.0f} ms more. "
            )
        else:
            text += f"{label} is {total[dense] / total[label]:.2f} times as fast as dense. "
    return text.strip()


def _caption(tables: Tables) -> str:
    parts = [
        f"{', '.join(_setting_text(tables, setting))}. {_verdict(grid)}" for setting, grid in _times(tables).items()
    ]
    reading = (
        "Milliseconds an iteration by phase: for each run the median over iterations, then the mean over seeds; the "
        "number on top is the sum of the phases. compute: forward and backward; select: choosing the entries to send; "
        "exchange: starting collectives and waiting for what back-propagation has not hidden, slower processes "
        "included; apply: the update; measure (hatched): logging the assumption, which training does not need and the "
        "comparisons below leave out. Where all processes share one machine, the exchange crosses no network."
    )
    return "\n".join([reading, *parts])


CAPTION = _caption

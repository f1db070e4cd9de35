"""How far predicted iterations are from emulated ones."""

import pandas as pd
from matplotlib.figure import Figure

from plots.style import looks, new_figure
from plots.tables import Tables
from plots.times import emulated_cells
from suite.words import method_label, network_name, plural

ORDER = 84
TITLE = "Prediction against emulation"
MISSING = "nothing was emulated, and no emulations are stored"
_WORKERS = 16


def draw(tables: Tables) -> Figure | None:
    """A line a model and network, a marker a method: predicted over emulated time; 10% and 20% are marked."""
    cells = _errors(tables)
    if cells.empty:
        return None
    places = {key: row for row, key in enumerate(dict.fromkeys(zip(cells.model, cells.network, strict=True)))}
    figure = new_figure(TITLE, 1.3 + 0.3 * len(places))
    (panel,) = figure.subplots(1, 1, squeeze=False).flat
    panel.axvspan(-10, 10, color="#e8eef4", linewidth=0, zorder=0)
    for edge, dash in ((10, "-"), (20, (0, (4, 3)))):
        for side in (-edge, edge):
            panel.axvline(side, color="#8899aa", linewidth=0.9, linestyle=dash, zorder=1)
    panel.axvline(0, color="#4a4a4a", linewidth=0.9, zorder=1)
    look_of = looks(cells.method)
    for method, of in cells.groupby("method", sort=False):
        look, full = look_of[method], of.workers == _WORKERS
        rows = [places[key] for key in zip(of.model, of.network, strict=True)]
        shift = 0.16 * (list(cells.method.unique()).index(method) - 1)
        for size, alpha, chosen, label in ((34, 1.0, full, method_label(method)), (12, 0.45, ~full, None)):
            if not chosen.any():
                continue
            y = [row + shift for row, keep in zip(rows, chosen, strict=True) if keep]
            panel.scatter(
                100 * of.error[chosen], y, s=size, marker=look.marker, color=look.colour, alpha=alpha, label=label,
                linewidths=0, zorder=3,
            )  # fmt: skip
    names = [f"{model}, {network_name(network)}" for model, network in places]
    panel.set_yticks(range(len(places)), names)
    panel.set_ylim(len(places) - 0.4, -0.6)
    panel.grid(axis="y", visible=False)
    reach = max(25.0, 110 * cells.error.abs().max())
    panel.set(xlabel="Predicted longer (right) or shorter (left) than emulated, in percent", xlim=(-reach, reach))
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _errors(tables: Tables) -> pd.DataFrame:
    """Emulated cells with `error`, predicted over emulated time minus 1."""
    cells = emulated_cells(tables)
    return cells.assign(error=cells.predicted_s / cells.emulated_s - 1)


def _caption(tables: Tables) -> str:
    reading = (
        "Relative difference of the predicted iteration from the median of the emulated ones, for every emulated cell; "
        "the band is 10%, the dashed lines 20%. Small faint marks are emulations with fewer workers."
    )
    cells, parts = _errors(tables), []
    full = cells.workers == _WORKERS
    for of, which in ((cells[full], f"{_WORKERS} workers"), (cells[~full], "other numbers of workers")):
        if of.empty:
            continue
        worst = of.loc[of.error.abs().idxmax()]
        parts.append(
            f"{plural(len(of), 'cell')} with {which}: the median absolute difference is {of.error.abs().median():.1%}, "
            f"the largest {worst.error:+.1%} ({worst.model} with {method_label(worst.method)} on "
            f"{network_name(worst.network)}, {worst.workers} workers); {(of.error.abs() <= 0.1).sum()} lie within 10%."
        )
    return "\n".join([reading, *parts])


CAPTION = _caption

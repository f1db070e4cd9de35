"""How every figure looks, and how it is written so that equal tables give equal bytes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # no display, no window system

import pandas as pd  # noqa: E402
import seaborn as sns  # noqa: E402
from matplotlib.artist import Artist  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.axis import Axis  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.textpath import TextPath  # noqa: E402
from matplotlib.ticker import Formatter, LogLocator, NullFormatter, StrMethodFormatter  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402

from suite.record.atomic import replacing  # noqa: E402

WIDTH = 6.8  # inches; narrow, so that the text survives a phone's screen
_BESIDE_AXES = 0.8  # inches that labels of an axis may take
_MOST_BELOW = 6  # entries of a legend under a single panel
LEGEND_COLUMNS, LEGEND_LINE = 3, 0.19  # of a legend under all panels; inches

# Ids in an SVG are salted at random unless a salt is given; glyphs as paths make it look the same without our fonts.
sns.set_theme(
    context="paper",
    style="ticks",
    rc={
        "svg.hashsalt": "suite",
        "svg.fonttype": "path",
        "savefig.dpi": 160,
        "figure.constrained_layout.use": True,
        "figure.titlesize": 13,
        "figure.titleweight": "bold",
        "font.size": 10,
        "axes.labelsize": 10,
        "axes.titlesize": 10.5,
        "axes.titlelocation": "left",
        "axes.grid": True,
        "grid.color": "#e4e4e4",
        "grid.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "lines.linewidth": 1.7,
        "lines.markersize": 5,
    },
)


@dataclass(frozen=True)
class Look:
    """What tells a method apart in every figure: three marks, so that none depends on seeing colour."""

    colour: str
    marker: str
    dash: tuple[float, ...]  # on, off, ... in line widths; empty is solid


# Okabe and Ito's palette, with a dark grey for the baseline in place of black and no yellow, which white swallows.
_COLOURS = ("#4a4a4a", "#e69f00", "#0072b2", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "h")
_DASHES = ((), (5, 1.5), (), (1, 1), (4, 1, 1, 1), (8, 2), (2, 1), (6, 1, 1, 1, 1, 1))
# Fixed, so that a method looks the same in every profile; methods not listed take the next marks as they appear.
_METHODS = ("dense", "slgs", "lags")


def looks(method_names: Iterable[str]) -> dict[str, Look]:
    """A look for each method; pass the names of all runs of the profile, not of one figure."""
    names = dict.fromkeys((*_METHODS, *method_names))
    marks = zip(cycle(_COLOURS), cycle(_MARKERS), cycle(_DASHES), strict=True)
    return {name: Look(*next(marks)) for name in names}


def line_style(look: Look) -> str | tuple[int, tuple[float, ...]]:
    """The look's dash as matplotlib's `linestyle`."""
    return (0, look.dash) if look.dash else "-"


@dataclass(frozen=True)
class Metric:
    """A test metric as people read it."""

    axis: str
    unit: str
    scale: float
    higher_is_better: bool

    def text(self, value: float) -> str:
        """A value with its unit."""
        return f"{value * self.scale:.1f}{self.unit}"


def metric(name: str) -> Metric:
    """Axis label, unit and direction of a metric of the tables."""
    if name == "test_accuracy":
        return Metric("Test accuracy (%)", "%", 100.0, True)
    return Metric(f"{name.replace('_', ' ').capitalize()}\n(lower is better)", "", 1.0, False)


def new_figure(title: str, height: float) -> Figure:
    """An empty figure of the common width, `height` in inches, with its title at the left."""
    figure = Figure(figsize=(WIDTH, height))
    figure.suptitle(title, x=0.01, ha="left")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, hspace=0.03, wspace=0.03)
    return figure


def panels(title: str, names: list[str], height: float) -> tuple[Figure, list[Axes]]:
    """A figure of one panel a name, two side by side, each row `height` inches high, each titled with its name."""
    columns = min(len(names), 2)
    rows = -(-len(names) // columns)
    figure = new_figure(title, 0.5 + rows * height)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[len(names) :]:
        spare.remove()
    for panel, name in zip(axes, names, strict=False):
        panel.set_title("\n".join(_wrapped(line, WIDTH / columns - _BESIDE_AXES) for line in name.splitlines()))
    return figure, axes[: len(names)]


def _wrapped(title: str, width: float) -> str:
    """The title in lines of at most so many inches: layout gives titles no room of their own."""
    lines = [""]
    for word in title.split():
        longer = f"{lines[-1]} {word}".strip()
        drawn = TextPath((0, 0), longer, size=matplotlib.rcParams["axes.titlesize"])
        if lines[-1] and drawn.get_extents().width > 72 * width:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def legend_below(axes: Axes) -> None:
    """A legend under the axes, one entry a line, where it can never cover a curve.

    With many entries a panel would have no room left: then the figure has one legend for all its panels.
    """
    handles, names = axes.get_legend_handles_labels()
    if len(names) > _MOST_BELOW:
        shared_legend(axes.figure, dict(zip(names, handles, strict=True)))
        return
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.2), borderaxespad=0, handlelength=2.6)


def shared_legend(figure: Figure, entries: dict[str, Artist]) -> None:
    """Add these entries, marks by text, to the legend under all panels; the figure grows by the lines it takes."""
    known, before = {}, 0
    for legend in figure.legends:  # one at most
        known = {text.get_text(): mark for text, mark in zip(legend.texts, legend.legend_handles, strict=True)}
        before = -(-len(known) // LEGEND_COLUMNS)
        legend.remove()
    known = entries | known
    lines = -(-len(known) // LEGEND_COLUMNS)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * (lines - before))
    figure.legend(
        known.values(),
        known.keys(),
        loc="outside lower left",
        ncols=LEGEND_COLUMNS,
        handlelength=2.6,
        columnspacing=1.2,
    )


def log_where_wide(axis: Axis, values: pd.Series, ratio: float, text: Formatter | None = None) -> None:
    """Make an axis logarithmic where its values are positive and span more than `ratio`, without powers of ten."""
    low, high = values.min(), values.max()
    if text is not None:
        axis.set_major_formatter(text)
    if 0 < ratio * low < high:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 40 * low else (1,)))
        axis.set_major_formatter(text or StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def density_text(density: float) -> str:
    """A density without trailing zeros, empty for dense methods."""
    return "" if density != density else f"density {density:g}"


def series_text(label: str, density: float) -> str:
    """A legend entry: the method and, for a sparse one, the share of entries it sends."""
    return ", ".join(filter(None, (label, density_text(density))))


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write NAME.svg and NAME.png, without dates inside. Fixes the figure's layout."""
    _settle(figure)
    for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        with replacing(folder / f"{name}.{kind}") as aside:
            figure.savefig(aside, format=kind, metadata=metadata)


def _settle(figure: Figure) -> None:
    """Lay the figure out once and round what came of it.

    The last bits of the constraint solver's positions depend on memory addresses, and an SVG's ids hash every bit.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(6))
    for axes in figure.axes:
        # The original position: the active one is already cut to what a colour bar's arrow heads leave.
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(6)))

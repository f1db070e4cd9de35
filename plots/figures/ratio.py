"""What the compression ratio costs and saves: one ratio for all layers against ratios that adapt below a cap."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, NullLocator

from plots.style import Look, line_style, log_where_wide, looks, metric, new_figure
from plots.tables import Tables
from suite.words import amount_of_bytes, listing, network_name, plural

ORDER = 52
TITLE = "Compression ratio: fixed and adaptive"
MISSING = "no experiment of this profile trains with adaptive ratios"
_ADAPTIVE = Look("#d55e00", "P", (4, 1.5))


def draw(tables: Tables) -> Figure | None:
    """A block an experiment: test metric, bytes and predicted iteration time against the ratio, two panels a row."""
    studies = _studies(tables)
    if not studies:
        return None
    blocks = {name: [*_panels(runs), *_timed(tables, name)] for name, runs in studies.items()}
    rows = [-(-len(panels) // 2) for panels in blocks.values()]
    figure = new_figure(TITLE, 0.6 + sum(0.4 + 2.7 * count for count in rows))
    parts = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=rows).flat
    fixed = looks(tables.runs.method_name)
    for (name, panels), part in zip(blocks.items(), parts, strict=True):
        part.suptitle(tables.title(name), x=0.01, ha="left", fontsize=10.5, fontweight="normal")
        axes = list(part.subplots(-(-len(panels) // 2), 2, squeeze=False).flat)
        for spare in axes[len(panels) :]:
            spare.remove()
        for panel, (column, text, frame) in zip(axes, panels, strict=False):
            _curves(panel, frame.assign(y=frame[column]), fixed)
            panel.set(xlabel="Ratio d / k, or its cap", ylabel=text)
            if column == "bytes":
                log_where_wide(panel.yaxis, frame.bytes, 5, EngFormatter("B"))
        handles, names = axes[0].get_legend_handles_labels()
        part.legend(handles, names, loc="outside lower center", ncols=3, handlelength=2.6)
    return figure


def _studies(tables: Tables) -> dict[str, pd.DataFrame]:
    """By experiment with adaptive ratios: its runs, with the bytes of an iteration."""
    runs = tables.runs[tables.runs.final.notna()]
    found = {name: of for name, of in runs.groupby("experiment", sort=False) if of.adaptive.any()}
    return {name: of.assign(bytes=of.bytes_sent / of.iterations) for name, of in found.items()}


def _panels(runs: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    shown = metric(runs.metric.iloc[0])
    scored = runs.assign(scored=runs.final * shown.scale)
    return [("scored", f"Final {shown.axis[0].lower()}{shown.axis[1:]}", scored), ("bytes", "Sent an iteration", runs)]


def _timed(tables: Tables, experiment: str) -> list[tuple[str, str, pd.DataFrame]]:
    """A panel a network whose iteration times are predicted."""
    times = tables.run_times[tables.run_times.experiment == experiment]
    runs = tables.runs[tables.runs.experiment == experiment].drop_duplicates("method")
    panels = []
    for network, of in times.groupby("network", sort=False):
        frame = runs.merge(of[["method", "iteration_s"]], on="method")
        panels.append(
            ("ms", f"Predicted iteration (ms),\n{network_name(network)}", frame.assign(ms=1e3 * frame.iteration_s))
        )
    return panels


def _curves(panel: Axes, frame: pd.DataFrame, fixed: dict[str, Look]) -> None:
    dense = frame[frame.ratio_cap.isna()]
    if len(dense):
        panel.axhline(dense.y.mean(), color=fixed["dense"].colour, linewidth=1.2, label=dense.label.iloc[0])
    sparse = frame[frame.ratio_cap.notna()]
    for adaptive, of in sparse.groupby("adaptive", sort=False):
        look = _ADAPTIVE if adaptive else fixed[of.method_name.iloc[0]]
        mean = of.groupby("ratio_cap").y.mean()
        panel.plot(of.ratio_cap, of.y, look.marker, color=look.colour, alpha=0.35, markersize=4)
        name = "up to this ratio, adaptive" if adaptive else "this ratio in every layer"
        panel.plot(mean, color=look.colour, marker=look.marker, linestyle=line_style(look), label=name)
    panel.set_xscale("log")
    panel.set_xticks(sorted(sparse.ratio_cap.unique()))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _caption(tables: Tables) -> str:
    sentences = []
    for name, runs in _studies(tables).items():
        shown = metric(runs.metric.iloc[0])
        times = tables.run_times[tables.run_times.experiment == name]
        parts = []
        for (cap, adaptive, method), of in runs.groupby(["ratio_cap", "adaptive", "method"], sort=True):
            own = times[times.method == method]
            seconds = [f"{1e3 * row.iteration_s:,.1f} ms on {network_name(row.network)}" for _, row in own.iterrows()]
            sent = amount_of_bytes(of.bytes.mean())
            parts.append(
                f"{'up to ' if adaptive else ''}{cap:g}: {', '.join([shown.text(of.final.mean()), sent, *seconds])}"
            )
        dense = runs[runs.ratio_cap.isna()]
        beside = (
            f" Dense: {shown.text(dense.final.mean())}, {amount_of_bytes(dense.bytes.mean())}." if len(dense) else ""
        )
        seeds = runs.groupby("method").seed.nunique()
        spread = plural(seeds.min(), "seed") if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()} seeds"
        sources = list(dict.fromkeys(times.source.dropna()))
        whose = f" Iteration times: {listing(sources)}" if sources else " Iteration times were not predicted."
        sentences.append(f"{tables.title(name)} ({spread} a point): {'; '.join(parts)}.{beside}{whose}")
    reading = (
        "The ratio is d / k: of how many entries of a layer one is sent. A fixed ratio is that of every layer; an "
        "adaptive one is chosen layer by layer as the smallest whose exchange still hides behind back-propagation, and "
        "never more than the cap. Lines are means over seeds, faint points single seeds. Bytes are those one worker "
        "sends in an iteration."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

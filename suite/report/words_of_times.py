"""What the tables of iteration times say, in sentences; every number is computed from them."""

from collections.abc import Callable, Iterable

import pandas as pd

from suite.report.times import SELECTIONS, Crossing, IterationTimes, SideBySide
from suite.speed.paper import PLANS
from suite.words import listing, method_label, network_name, number, plural


def origin(times: IterationTimes) -> str:
    """Where the emulated times come from."""
    cells, emulated = times.cells, times.emulated
    if emulated.empty:
        return (
            "Nothing was emulated for this profile and no emulations are kept in results/reference: predicted times "
            "stand without a measurement beside them."
        )
    names = {times.profile: "by this profile"}
    places = listing(
        f"{len(of)} {names.get(name, f'kept in results/{name}')}"
        for name, of in sorted(emulated.groupby("emulated_in"), key=lambda found: found[0] != times.profile)
    )
    return (
        f"{len(emulated)} of {len(cells)} cells are emulated: {places}. An emulated time is the median of "
        f"{_range(emulated.iterations, '{:.0f}')} iterations in time stretched {_range(emulated.stretch, '{:g}')} "
        "times, so that the hosts share this machine's cores, and divided by the stretch."
    )


def accuracy(times: IterationTimes) -> str:
    """How far predictions are from emulations; empty without any."""
    cells = times.emulated
    if cells.empty:
        return ""
    error = cells.predicted_s / cells.emulated_s - 1
    worst = cells.loc[error.abs().idxmax()]
    return (
        f"Prediction against emulation, over {plural(len(cells), 'cell')}: the median absolute difference is "
        f"{error.abs().median():.1%}, the largest {error[worst.name]:+.1%} ({worst.model} with "
        f"{method_label(worst.method)} on {network_name(worst.network)})."
    )


def comparison(rows: list[SideBySide]) -> list[str]:
    """By source and network: S1 with the models for which dense is the faster one, and S2."""
    out = []
    for (source, network), of in _grouped(rows, lambda row: (row.source, row.network)):
        speedups = {row.model: row.dense_over_lags for row in of if pd.notna(row.dense_over_lags)}
        saved = [row.saved for row in of if pd.notna(row.saved)]
        parts = []
        if speedups:
            low, high = min(speedups, key=speedups.get), max(speedups, key=speedups.get)
            won = [model for model, speedup in speedups.items() if speedup < 1]
            span = "" if low == high else f" to {speedups[high]:.2f} ({high})"
            parts = [
                f"dense over LAGS-SGD is {speedups[low]:.2f} ({low}){span}",
                f"dense is faster than LAGS-SGD for {_models(won, len(speedups))}",
            ]
        if saved:
            mean = sum(saved) / len(saved)
            parts.append(f"LAGS-SGD saves {mean:.1%} of SLGS-SGD's time, mean of {plural(len(saved), 'model')}")
        if parts:
            out.append(f"{source.capitalize()}, {network_name(network)}: {'; '.join(parts)}.")
    return out


def pipelining(rows: list[SideBySide]) -> list[str]:
    """Which measured gains lie above their own maximum, by what stands for communication."""
    out = []
    for column in ("selection", "exchange"):
        over = [row for row in rows if row.slgs_over_lags > getattr(row, f"bound_{column}")]
        named = "; ".join(
            f"{source}: {listing(f'{row.model} on {network_name(row.network)}' for row in found)}"
            for source, found in _grouped(over, lambda row: row.source)
        )
        text = f"With the {column} time for communication, "
        text += (
            f"SLGS / LAGS lies above its own maximum for {named}" if named else "no SLGS / LAGS is above its maximum"
        )
        out.append(f"{text}.")
    return out


def too_fast(times: IterationTimes, rows: list[SideBySide]) -> str:
    """Published dense totals shorter than the exchange alone can be; empty where there are none."""
    found = [
        f"{row.model} ({row.dense:.2f} s against {times.exchange(row.model, row.network, 'dense'):.2f} s)"
        for row in rows
        if row.source == "published" and row.dense < times.exchange(row.model, row.network, "dense")
    ]
    if not found:
        return ""
    return (
        f"The recalled dense total is shorter than a ring all-reduce of the gradient takes on the published network, "
        f"for {listing(found)}: that number and that network do not go together."
    )


def unexplained(times: IterationTimes, rows: list[SideBySide]) -> str:
    """The published exchange of SLGS-SGD beside what its bytes and the authors' own fit of their network give; empty
    without published times."""
    parts = []
    for row in rows:
        exchange = row.slgs - row.slgs_bound
        if row.source == "published" and pd.notna(exchange):
            seconds = {name: times.exchange(row.model, name, "slgs") for name in (row.network, f"{row.network}-fitted")}
            bare, fitted = seconds.values()
            text = f"{row.model} {1e3 * exchange:.0f} ms against {1e3 * bare:.0f} ms predicted"
            parts.append(text + (f" and {1e3 * fitted:.0f} ms by the fit" if pd.notna(fitted) else ""))
    if not parts:
        return ""
    return (
        "The published exchange of SLGS-SGD is neither what its bytes take on such a link nor what the authors' own "
        f"fit of their network gives: {'; '.join(parts)}. What else was in it is in no prediction and in no emulation "
        "here, so published times are no measure of either."
    )


def conflict(times: IterationTimes) -> list[str]:
    """At which bandwidth and cost of selection each source's speed-up would be true, by model."""
    out = []
    selections = [name for name in SELECTIONS if name in set(times.crossings.selection)]
    for ratio in times.ratios():
        if ratio != 1.0:
            merged = _reached(times, ratio, PLANS["dense"], selections)
            whole = _reached(times, ratio, "dense, one message", selections)
            whole = "just so" if merged == whole else whole
            out.append(f"{ratio:g} times as fast as dense with merged messages is predicted {merged}.")
            out.append(
                f"{ratio:g} times as fast as dense with one message after back-propagation is predicted {whole}."
            )
    out += [_fall(times, selection) for selection in selections]
    return [sentence for sentence in out if sentence]


def _reached(times: IterationTimes, ratio: float, plan: str, selections: list[str]) -> str:
    """For which models LAGS-SGD is predicted to be so many times as fast as a dense plan, at 1 and 10 Gb/s."""
    parts = []
    for selection in selections:
        reached = []
        for bandwidth in (1.0, 10.0):
            found = times.speedups(bandwidth, selection, plan)
            models = [model for model, value in found.items() if value >= ratio]
            reached.append(f"{_models(models, len(found))} at {bandwidth:g} Gb/s")
        parts.append(f"with {SELECTIONS[selection]} for {listing(reached)}")
    return ", ".join(parts)


def _fall(times: IterationTimes, selection: str) -> str:
    """How the speed-up falls from 1 to 10 Gb/s, and where between them 30% lies."""
    slow, fast = (times.speedups(bandwidth, selection, PLANS["dense"]) for bandwidth in (1.0, 10.0))
    if not slow or not fast:
        return ""
    where = {
        model: next((crossing.bandwidth for crossing in found if crossing.ratio == 1.3), float("nan"))
        for model, name, plan, found in times.crossing_rows()
        if name == selection and plan == PLANS["dense"]
    }
    texts = "; ".join(
        f"{model} from {slow[model]:.2f} to {fast[model]:.2f}"
        + (f", 1.3 at {number(where[model], 2)} Gb/s" if pd.notna(where.get(model, float("nan"))) else "")
        for model in slow
    )
    return f"From 1 to 10 Gb/s with {SELECTIONS[selection]}, dense over LAGS-SGD falls so: {texts}."


def crossing_text(crossing: Crossing) -> str:
    """A cell of the table of bandwidths."""
    if pd.notna(crossing.bandwidth):
        return f"{number(crossing.bandwidth, 2)}"
    if crossing.lowest > crossing.ratio:
        return f"always above (lowest {crossing.lowest:.2f})"
    return f"never (highest {crossing.highest:.2f})"


def missing(times: IterationTimes) -> str:
    """What the page lacks about iteration times; empty where nothing is missing."""
    absent = len(times.cells) - len(times.emulated)
    if not absent:
        return ""
    none = times.emulated.empty
    which = "Iteration times over a network" if none else f"{absent} of {len(times.cells)} iteration times"
    return f"{which}: predicted, not emulated. `suite emulate` says what it needs on this machine."


def _models(names: list[str], of: int) -> str:
    if not names:
        return "no model"
    return f"all {of} models" if len(names) == of else listing(names)


def _range(values: pd.Series, form: str) -> str:
    low, high = form.format(values.min()), form.format(values.max())
    return low if low == high else f"{low} to {high}"


def _grouped(rows: Iterable[SideBySide], key: Callable) -> list[tuple]:
    found: dict = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.items())

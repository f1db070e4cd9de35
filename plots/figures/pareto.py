"""Where many methods end: test metric against bytes, rounds and predicted time, and which of them nothing beats."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, Formatter

from plots.style import Look, log_where_wide, looks, metric, panels, series_text, shared_legend
from plots.tables import Tables
from suite.record.reach import higher_is_better, training_time
from suite.words import listing, metric_name, network_name, plural

ORDER = 12
TITLE = "What each method pays for its result"
MISSING = "no experiment of this profile runs four or more methods side by side"
_FEWEST = 4  # methods; for fewer the curves say it all
_KEYS = ["method_name", "label", "density"]


@dataclass(frozen=True)
class _Cost:
    """One price: what it is, how its axis is written, and epochs with their `cost` and `loss`, both better if low."""

    name: str
    axis: str
    ticks: Formatter | None
    epochs: pd.DataFrame

    def ends(self) -> pd.DataFrame:
        """A row a method, means over seeds at the end of training: cost, loss, its range, and whether none beats it."""
        last = self.epochs[self.epochs.epoch == self.epochs.groupby(["method", "seed"]).epoch.transform("max")]
        ends = last.groupby(_KEYS, sort=False, dropna=False).agg(
            cost=("cost", "mean"), loss=("loss", "mean"), low=("loss", "min"), high=("loss", "max")
        )
        return ends.assign(unbeaten=[_unbeaten(end, ends) for end in ends.itertuples()]).reset_index()


def draw(tables: Tables) -> Figure | None:
    """A panel a price: a faint line the way there, a marker the end, a grey line what nothing else beats."""
    experiments = _experiments(tables)
    if not experiments:
        return None
    costs = [(name, cost) for name in experiments for cost in _costs(tables, name)]
    titles = [f"{tables.title(name)}\n{cost.name}" if len(experiments) > 1 else cost.name for name, cost in costs]
    figure, axes = panels(TITLE, titles, 3.1)
    look_of, entries = looks(tables.runs.method_name), {}
    for (_, cost), panel in zip(costs, axes, strict=True):
        entries |= _panel(panel, cost, look_of)
    shared_legend(figure, entries)
    return figure


def _panel(panel: Axes, cost: _Cost, look_of: dict[str, Look]) -> dict[str, Artist]:
    """Draw one panel; returns its markers by legend text."""
    ends, entries = cost.ends(), {}
    front = ends[ends.unbeaten].sort_values("cost")
    panel.plot(front.cost, front.loss, color="#bbbbbb", linewidth=3, zorder=1, solid_capstyle="round")
    for end in ends.itertuples():
        look = look_of[end.method_name]
        way = cost.epochs[cost.epochs.method_name == end.method_name].groupby("epoch")[["cost", "loss"]].mean()
        panel.plot(way.cost, way.loss, color=look.colour, alpha=0.3, linewidth=0.8, zorder=2)
        panel.vlines(end.cost, end.low, end.high, color=look.colour, linewidth=0.9, zorder=3)
        (entries[series_text(end.label, end.density)],) = panel.plot(
            [end.cost], [end.loss], color=look.colour, marker=look.marker, linestyle="", markersize=7, zorder=4,
            markerfacecolor=look.colour if end.unbeaten else "white",
        )  # fmt: skip
    panel.set(xlabel=cost.axis, ylabel=_loss_axis(cost.epochs))
    log_where_wide(panel.yaxis, pd.concat([ends.low, ends.high]), 5)
    log_where_wide(panel.xaxis, ends.cost, 10, cost.ticks)
    _frame(panel, ends)
    return entries


def _frame(panel: Axes, ends: pd.DataFrame) -> None:
    """Leave out what lies far from where the methods end: the first epochs."""
    for axis, low, high in (("x", ends.cost.min(), ends.cost.max()), ("y", ends.low.min(), ends.high.max())):
        if getattr(panel, f"get_{axis}scale")() == "log":
            spare = (high / low) ** 0.12
            limits = (low / spare, high * spare)
        else:
            spare = 0.12 * (high - low) or 1.0
            limits = (low - spare, high + spare)
        getattr(panel, f"set_{axis}lim")(limits)


def _experiments(tables: Tables) -> list[str]:
    counts = tables.runs.groupby("experiment").method_name.nunique()
    return [name for name in tables.comparisons if counts[name] >= _FEWEST]


def _costs(tables: Tables, experiment: str) -> Iterator[_Cost]:
    epochs = tables.epochs[tables.epochs.experiment == experiment]
    shown = metric(epochs.metric.iloc[0])
    value = epochs.value * shown.scale
    epochs = epochs.assign(loss=shown.scale - value if shown.higher_is_better else value)
    yield _Cost("Bytes", "Sent by one worker", EngFormatter("B"), epochs.assign(cost=epochs.bytes_sent))
    yield _Cost("Rounds", "Rounds of communication", None, epochs.assign(cost=epochs.rounds))
    times = tables.run_times[tables.run_times.experiment == experiment]
    for network, of in times.groupby("network", sort=False):
        timed = training_time(epochs, of)
        name = f"Time on {network_name(network)}"
        yield _Cost(name, "Training time (seconds, predicted)", None, timed.assign(cost=timed.time))


def _loss_axis(epochs: pd.DataFrame) -> str:
    name = epochs.metric.iloc[0]
    return "Test error (%)" if higher_is_better(name) else metric(name).axis


def _unbeaten(end: tuple, ends: pd.DataFrame) -> bool:
    """Whether no other method is at least as good in both and better in one."""
    level = (ends.cost <= end.cost) & (ends.loss <= end.loss)
    return not (level & ((ends.cost < end.cost) | (ends.loss < end.loss))).any()


def _caption(tables: Tables) -> str:
    lines = [
        "Every method trains for the same number of samples; a marker is where it ends, mean over seeds, with a line "
        "from its best to its worst seed. Down and to the left is better. Filled markers, joined in grey, are those "
        "that no other method beats in one of the two without losing in the other. Faint lines are the way there. "
        "Bytes and rounds are counted in the runs: a round is one wait of all for what others sent, an average inside "
        "groups too, and messages of one iteration that do not wait for one another are one. Time is predicted, for "
        "hosts on that network: a worker's base batches at their computing time, and the rest of an iteration as "
        "often as there were iterations."
    ]
    for name in _experiments(tables):
        runs = tables.runs[tables.runs.experiment == name]
        head = f"{tables.title(name)} ({plural(runs.seed.nunique(), 'seed')})"
        parts = []
        for cost in _costs(tables, name):
            ends = cost.ends()
            parts.append(f"{cost.name.lower().replace('gbe', 'GbE')}: {listing(ends.label[ends.unbeaten])}")
        what = metric_name(runs.metric.iloc[0])
        lines.append(f"{head}, unbeaten in {what} and {'; '.join(parts)}.")
        lines += _not_timed(tables, name)
    return "\n".join(lines)


def _not_timed(tables: Tables, experiment: str) -> list[str]:
    """Which methods lack a predicted time, and why."""
    refused = tables.refused[tables.refused.experiment == experiment]
    names = tables.runs[tables.runs.experiment == experiment].drop_duplicates("method").set_index("method").label
    known = set(tables.run_times.method[tables.run_times.experiment == experiment]) | set(refused.method)
    groups = refused[refused.method.isin(names.index)].groupby(["method", "source"], sort=False).network.unique()
    lines = [
        f"Without a time on {listing(map(network_name, networks))}: {names[method]}, because {reason}."
        for (method, reason), networks in groups.items()
    ]
    left = [label for method, label in names.items() if method not in known]
    return [*lines, f"No time was predicted for {listing(left)}."] if left else lines


CAPTION = _caption

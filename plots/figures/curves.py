"""Training loss and test metric against epochs."""

import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plots.style import LEGEND_COLUMNS, LEGEND_LINE, log_where_wide, metric, new_figure
from plots.tables import Tables
from suite.words import listing, plural

ORDER = 10
TITLE = "Training and test curves"
MISSING = "no experiment of this profile runs two or more methods, or ways of one, side by side"


def draw(tables: Tables) -> Figure | None:
    """One row an experiment: training loss at the left, test metric at the right; mean and min-max over seeds."""
    experiments = tables.side_by_side
    if not experiments:
        return None
    entries = tables.epochs.groupby("experiment").method.nunique()
    lines = -(-max(entries[name] for name in experiments) // LEGEND_COLUMNS)
    figure = new_figure(TITLE, 0.4 + (2.6 + LEGEND_LINE * lines) * len(experiments))
    for row, (experiment, band) in enumerate(
        zip(experiments, figure.subfigures(len(experiments), 1, squeeze=False).flat, strict=True)
    ):
        epochs = tables.epochs[tables.epochs.experiment == experiment]
        shown = metric(epochs.metric.iloc[0])
        epochs = tables.with_series(epochs.assign(value=epochs.value * shown.scale))
        marks = {one.series: tables.looks[one.look] for one in epochs.drop_duplicates("series").itertuples()}
        # About eight markers a curve, the last of them on its end.
        last = epochs.epoch.nunique() - 1
        step = max(1, last // 7)
        band.suptitle(tables.title(experiment), x=0.01, ha="left", fontsize=10.5, fontweight="normal")
        for axes, column, text in zip(
            band.subplots(1, 2), ("train_loss", "value"), ("Training loss (nats)", shown.axis), strict=True
        ):
            sns.lineplot(
                epochs,
                x="epoch",
                y=column,
                hue="series",
                style="series",
                ax=axes,
                legend=column == "train_loss",
                palette={series: look.colour for series, look in marks.items()},
                markers={series: look.marker for series, look in marks.items()},
                dashes={series: look.dash for series, look in marks.items()},
                errorbar=lambda values: (values.min(), values.max()),
                err_kws={"alpha": 0.18, "linewidth": 0},
                markevery=(last % step, step),
                markeredgewidth=0,
            )
            axes.set(xlabel="Epoch" if row == len(experiments) - 1 else "", ylabel=text)
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            if column == "train_loss":
                handles, names = axes.get_legend_handles_labels()
                axes.get_legend().remove()
                band.legend(handles, names, loc="outside lower center", ncols=LEGEND_COLUMNS, handlelength=2.6)
            if column == "train_loss" or not shown.higher_is_better:
                log_where_wide(axes.yaxis, epochs[column], 5)
    return figure


def _caption(tables: Tables) -> str:
    ends = []
    for experiment in tables.side_by_side:
        runs = tables.runs[tables.runs.experiment == experiment]
        shown = metric(runs.metric.iloc[0])
        means = runs.groupby(tables.told_apart_by(experiment), sort=False).final.mean()
        values = listing(f"{label} {shown.text(value)}" for label, value in means.items())
        ends.append(
            f"{tables.title(experiment)} ({plural(runs.seed.nunique(), 'seed')}): mean final "
            f"{runs.metric.iloc[0].replace('_', ' ')} of {values}."
        )
    reading = (
        "Left: cross-entropy on the training data, in nats a sample or token. Right: the test metric after each epoch. "
        "Lines are means over seeds, bands reach from the lowest to the highest seed; density is the share of gradient "
        "entries a worker sends."
    )
    return "\n".join([reading, *ends])


CAPTION = _caption

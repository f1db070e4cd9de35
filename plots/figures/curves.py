"""Training loss and test metric against epochs."""

import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plots.style import log_where_wide, looks, metric, new_figure, series_text
from plots.tables import Tables
from suite.words import listing, plural

ORDER = 10
TITLE = "Training and test curves"
MISSING = "no experiment of this profile runs two or more methods side by side"


def draw(tables: Tables) -> Figure | None:
    """One row an experiment: training loss at the left, test metric at the right; mean and min-max over seeds."""
    experiments = _experiments(tables)
    if not experiments:
        return None
    figure = new_figure(TITLE, 0.4 + 2.8 * len(experiments))
    look_of = looks([*tables.runs.method_name, *tables.runs.method[tables.runs.experiment.isin(tables.numerics)]])
    for row, (experiment, band) in enumerate(
        zip(experiments, figure.subfigures(len(experiments), 1, squeeze=False).flat, strict=True)
    ):
        epochs = tables.epochs[tables.epochs.experiment == experiment]
        shown = metric(epochs.metric.iloc[0])
        epochs = epochs.assign(
            value=epochs.value * shown.scale,
            series=[series_text(label, density) for label, density in zip(epochs.label, epochs.density, strict=True)],
        )
        if experiment in tables.numerics:  # one method throughout: what differs is in the names of its runs
            epochs = epochs.assign(series=epochs.method, method_name=epochs.method)
        names = epochs.drop_duplicates("series").set_index("series").method_name
        marks = {series: look_of[name] for series, name in names.items()}
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
                band.legend(handles, names, loc="outside lower center", ncols=3, handlelength=2.6)
            if column == "train_loss" or not shown.higher_is_better:
                log_where_wide(axes.yaxis, epochs[column], 5)
    return figure


def _experiments(tables: Tables) -> list[str]:
    return [*tables.comparisons, *(name for name in tables.numerics if name not in tables.comparisons)]


def _caption(tables: Tables) -> str:
    ends = []
    for experiment in _experiments(tables):
        runs = tables.runs[tables.runs.experiment == experiment]
        shown = metric(runs.metric.iloc[0])
        means = runs.groupby("method" if experiment in tables.numerics else "label", sort=False).final.mean()
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

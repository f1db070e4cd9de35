"""How much of the averaged gradient's norm the selected entries carry."""

from matplotlib.figure import Figure

from plots.style import line_style, looks, panels
from plots.tables import Tables
from suite.words import listing

ORDER = 40
TITLE = "Share of the norm that is sent"
MISSING = "no sparse run of this profile logged the assumption"


def draw(tables: Tables) -> Figure | None:
    """One panel an experiment, first seed: median over segments and a band from the 5th to the 95th percentile."""
    rows = _rows(tables)
    if rows.empty:
        return None
    experiments = list(rows.experiment.unique())
    figure, axes = panels(TITLE, [tables.title(name) for name in experiments], 3.0)
    look_of = looks(tables.runs.method_name)
    for experiment, panel in zip(experiments, axes, strict=True):
        for (method, label), of in rows[rows.experiment == experiment].groupby(["method", "label"], sort=False):
            look = look_of[tables.method_name(experiment, method)]
            over = of.groupby("iteration").norm_ratio.quantile([0.05, 0.5, 0.95]).unstack()
            panel.fill_between(over.index, over[0.05], over[0.95], color=look.colour, alpha=0.18, linewidth=0)
            panel.plot(over[0.5], color=look.colour, linestyle=line_style(look), label=label, linewidth=1.3)
        panel.set(xlabel="Iteration", ylabel=r"$\|s\|\,/\,\|x\|$  (no unit)")
        panel.set_ylim(0, 1.02 * max(1.0, panel.get_ylim()[1]))
        panel.legend(loc="upper right", ncols=2)
    return figure


def _rows(tables: Tables):
    rows = tables.assumption_iterations
    rows = rows[rows.norm_ratio.notna() & rows.experiment.isin(tables.comparisons or rows.experiment)]
    return rows[rows.seed == rows.groupby(["experiment", "method"]).seed.transform("min")]


def _caption(tables: Tables) -> str:
    sentences = []
    for experiment, of in _rows(tables).groupby("experiment", sort=False):
        medians = of.groupby("label", sort=False).norm_ratio.median()
        values = listing(f"{value:.2f} for {label}" for label, value in medians.items())
        sentences.append(f"{tables.title(experiment)}: median over the run {values}.")
    reading = (
        "x is the mean over workers of gradient plus residual, s the mean of what they send; the ratio of the two "
        "norms has no unit and is 1 when everything is sent. Lines are medians over the segments of a method (SLGS-SGD "
        "has one, the whole gradient), bands the 5th to 95th percentile over segments; first seed, thinned to at most "
        "500 iterations."
    )
    return "\n".join([reading, *sentences])


CAPTION = _caption

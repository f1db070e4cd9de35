"""What `suite plan` and `suite predict` share: the methods side by side under the same costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suite.config import ExperimentConfig
from suite.config.costs import Costs
from suite.plan import Layout, Plan, greedy_groups, layer_wise, merge, message_bytes, predict_plan
from suite.timeline import Timeline

# Title: settings of a method; density and c_u are filled in. The paper's three methods, and what merging adds to each.
_METHODS = {
    "dense, one message": {"name": "dense", "messages": "one"},
    "dense, layer-wise": {"name": "dense", "messages": "layer"},
    "dense, merged": {"name": "dense", "messages": "merged"},
    "SLGS": {"name": "slgs"},
    "LAGS, layer-wise": {"name": "lags", "messages": "layer"},
    "LAGS, merged": {"name": "lags", "messages": "merged"},
    "LAGS adaptive, next": {"name": "lags", "messages": "merged", "adaptive": {"rule": "next"}},
    "LAGS adaptive, later": {"name": "lags", "messages": "merged", "adaptive": {"rule": "later"}},
}


@dataclass(frozen=True)
class Prediction:
    """One plan and the iteration predicted for it: `entry_bytes` of a selected entry; `rule` chose adaptive ratios."""

    title: str
    plan: Plan
    timeline: Timeline
    entry_bytes: int
    rule: str | None = None

    def row(self) -> dict[str, Any]:
        """The numbers of a table's row: seconds, and the bytes one worker hands to the collectives."""
        timeline = self.timeline
        return {
            "plan": self.title,
            "messages": len(self.plan.messages),
            "bytes": sum(message_bytes(message, self.entry_bytes) for message in self.plan.messages),
            **{f"{phase}_s": timeline.total(phase) for phase in ("forward", "backward", "select", "exchange")},
            "exposed_s": timeline.exposed,
            "hidden_share": timeline.hidden_share,
            "iteration_s": timeline.iteration,
        }


def prediction(title: str, method, layout: Layout, costs: Costs, rule: str | None = None) -> Prediction:
    """The iteration of a method after its warm-up."""
    plan = method.plan(layout, epoch=len(getattr(method.settings, "density_warmup", ())))
    return Prediction(title, plan, predict_plan(plan, layout, costs, method.entry_bytes), method.entry_bytes, rule)


def predictions(experiment: ExperimentConfig, layout: Layout, costs: Costs) -> list[Prediction]:
    """The paper's methods under the same costs, with the experiment's density (or 0.001) and wire format."""
    from suite.methods import build_method, settings_from

    adaptive, own = getattr(experiment.method, "adaptive", None), experiment.method.model_dump()
    shared = {key: own[key] for key in ("density", "wire") if key in own}
    c_u = adaptive.c_u if adaptive else 1 / shared.get("density", 0.001)
    out = []
    for title, values in _METHODS.items():
        values = values if values["name"] == "dense" else values | shared
        if "adaptive" in values:
            values = values | {"adaptive": values["adaptive"] | {"c_u": c_u}}
        rule = values["adaptive"]["rule"] if "adaptive" in values else None
        out.append(prediction(title, build_method(settings_from(values), costs), layout, costs, rule))
        if title == "dense, merged":
            entry_bytes = out[-1].entry_bytes
            published = merge(layer_wise(layout, lambda name: None), layout, costs, grouping=greedy_groups)
            out.append(
                Prediction("dense, MG-WFBP rule", published, predict_plan(published, layout, costs), entry_bytes)
            )
    return out


def layout_of(experiment: ExperimentConfig):
    """The model, described but not allocated, and where its parameter tensors lie in the gradient."""
    import torch

    from suite.data import load_dataset
    from suite.models import build_model

    dataset = load_dataset(experiment)
    with torch.device("meta"):
        model = build_model(experiment, dataset)
    named = list(model.named_parameters())
    return model, Layout(tuple(name for name, _ in named), tuple(p.numel() for _, p in named))


def print_rows(rows: Sequence[dict[str, Any]], title: str) -> None:
    """Predicted iterations as a table that fits 80 columns, in milliseconds."""
    from rich.console import Console
    from rich.table import Table

    times = ", ".join(f"{phase} {1e3 * rows[0][f'{phase}_s']:.1f} ms" for phase in ("forward", "backward"))
    table = Table(title=f"{title}: {times}", title_justify="left", box=None, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    for name in ("msgs", "MB", "select", "exchange", "hidden", "exposed", "total"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        select, exchange, exposed, total = (
            f"{1e3 * row[f'{name}_s']:.1f}" for name in ("select", "exchange", "exposed", "iteration")
        )
        size, hidden = f"{row['bytes'] / 1e6:.3f}", f"{row['hidden_share']:.0%}"
        table.add_row(row["plan"], str(row["messages"]), size, select, exchange, hidden, exposed, total)
    print()
    Console().print(table)


READING = (
    "Milliseconds of one iteration of a worker on a device of its own, without the update; MB: what one worker hands "
    "to the collectives; hidden, exposed: share and time of the exchange inside and outside of back-propagation"
)

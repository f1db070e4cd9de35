"""The iterations of all methods on a network, predicted side by side."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from suite.config.costs import Costs, NetworkCosts
from suite.config.values import sentence
from suite.errors import ConfigError
from suite.plan import Layout, Plan, greedy_groups, merge, message_bytes, predict_plan, wire_bytes
from suite.speed.paper import PLANS
from suite.speed.subject import Subject
from suite.timeline import Timeline

# Titles of plans that tables and advice name; those of the paper's methods are in suite.speed.paper.
DENSE_ONE, LAGS_ADAPTIVE = "dense, one message", "LAGS adaptive, later"
_PUBLISHED_RULE = "dense, MG-WFBP rule"

# Settings of a method by title; density, wire and c_u are filled in. Dense without overlap, with wait-free
# back-propagation, with merged messages, and the paper's two sparse methods, merged and with adaptive ratios.
_METHODS = {
    DENSE_ONE: {"name": "dense", "messages": "one"},
    "dense, layer-wise": {"name": "dense", "messages": "layer"},
    PLANS["dense"]: {"name": "dense", "messages": "merged"},
    _PUBLISHED_RULE: {"name": "dense", "messages": "layer"},
    PLANS["slgs"]: {"name": "slgs"},
    "LAGS, layer-wise": {"name": "lags", "messages": "layer"},
    PLANS["lags"]: {"name": "lags", "messages": "merged"},
    "LAGS adaptive, next": {"name": "lags", "messages": "merged", "adaptive": {"rule": "next"}},
    LAGS_ADAPTIVE: {"name": "lags", "messages": "merged", "adaptive": {"rule": "later"}},
}
TITLES = tuple(_METHODS)


@dataclass(frozen=True)
class Prediction:
    """One plan and the iteration predicted for it.

    Attributes:
        title: of the plan.
        method: name of the method.
        density: share of the entries that the method's settings ask for; that is sent, where ratios are adaptive.
        plan: what is sent when.
        timeline: of the iteration.
        entry_bytes: of a selected entry on the wire.
        workers: P.
        sent_bytes: that one worker puts on the wire an iteration.
        rule: that chose adaptive ratios; None for fixed ones.
    """

    title: str
    method: str
    density: float
    plan: Plan
    timeline: Timeline
    entry_bytes: int
    workers: int
    sent_bytes: float
    rule: str | None = None

    def row(self) -> dict[str, Any]:
        """The numbers of a table's row: seconds, and `bytes` that one worker hands to the collectives."""
        timeline = self.timeline
        return {
            "plan": self.title,
            "method": self.method,
            "density": self.density,
            "messages": len(self.plan.messages),
            "bytes": sum(message_bytes(message, self.entry_bytes) for message in self.plan.messages),
            **{f"{phase}_s": timeline.total(phase) for phase in ("forward", "backward", "select", "exchange")},
            "exposed_s": timeline.exposed,
            "hidden_share": timeline.hidden_share,
            "iteration_s": timeline.iteration,
        }


def prediction(title: str, method: Any, layout: Layout, costs: Costs) -> Prediction:
    """The iteration of a method after its warm-up.

    Args:
        title: of its plan.
        method: a `suite.methods.Method`, built with these costs where it plans from them.
        layout: of the gradient.
        costs: of layers and network.
    """
    settings = method.settings
    epoch = len(getattr(settings, "density_warmup", ()))
    plan = method.plan(layout, epoch)
    if title == _PUBLISHED_RULE:
        plan = merge(plan, layout, costs, grouping=greedy_groups, collective=method.collective)
    adaptive = getattr(settings, "adaptive", None)
    return Prediction(
        title=title,
        method=settings.name,
        density=method.density_at(epoch) or plan.entries / layout.size,
        plan=plan,
        timeline=predict_plan(plan, layout, costs, method.entry_bytes, method.collective),
        entry_bytes=method.entry_bytes,
        workers=costs.network.workers,
        sent_bytes=wire_bytes(plan, costs.network.workers, method.entry_bytes, method.traffic),
        rule=adaptive.rule if adaptive else None,
    )


def predictions(subject: Subject, network: NetworkCosts, titles: Iterable[str] = TITLES) -> list[Prediction]:
    """The subject's iterations on a network, one a plan.

    Sparse methods take density and wire format of the subject's method, adaptive ratios its c_u, or 1 / density.
    """
    own = subject.method.model_dump()
    shared = {"density": subject.density} | {key: own[key] for key in ("wire",) if key in own}
    adaptive = own.get("adaptive") or {"c_u": 1 / subject.density}
    out = []
    for title in titles:
        values = _METHODS[title]
        values = values if values["name"] == "dense" else values | shared
        if "adaptive" in values:
            values = values | {"adaptive": values["adaptive"] | {"c_u": adaptive["c_u"]}}
        out.append(predicted_with(values, subject, network, title))
    return out


def predicted_with(values: dict[str, Any], subject: Subject, network: NetworkCosts, title: str = "") -> Prediction:
    """The subject's iteration on a network with a method of its own.

    Args:
        values: the method's name and settings.
        title: of its plan.

    Raises:
        ConfigError: there is no such method, or setting of it.
    """
    from suite.methods import build_method, settings_from

    try:
        settings = settings_from(values)
    except ValueError as error:
        raise ConfigError(sentence(error) if isinstance(error, ValidationError) else str(error)) from error
    costs = Costs(layers=subject.layers, network=network)
    return prediction(title, build_method(settings, costs), subject.layout, costs)

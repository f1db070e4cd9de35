"""How long a prediction takes, with its plan given and with the plan made for the network."""

from collections.abc import Callable
from typing import Any

from suite.bench.timing import interleaved, medians
from suite.config.costs import Costs, NetworkCosts
from suite.methods import build_method, settings_from
from suite.plan import merge, predict_plan
from suite.speed.predictions import TITLES, predictions
from suite.speed.subject import Subject


def bench_predict(subject: Subject, network: NetworkCosts, repeats: int) -> dict[str, Any]:
    """Time the timeline of given plans, merging by dynamic programming, and plan and timeline of all methods.

    Returns:
        seconds by case (medians) and the longest of the cases with a given plan, one prediction.
    """
    costs = Costs(layers=subject.layers, network=network)
    cases = _cases(subject, costs)
    seconds = medians(interleaved(cases, repeats, warm_up=2))
    given = [seconds[name] for name in cases if name.startswith("plan given")]
    return {
        "benchmark": "predict",
        "subject": subject.name,
        "layers": len(subject.layout.names),
        "workers": network.workers,
        "repeats": repeats,
        "seconds": seconds,
        "longest_prediction_s": max(given),
    }


def _cases(subject: Subject, costs: Costs) -> dict[str, Callable[[], object]]:
    layout = subject.layout

    def planned(**values: Any) -> Any:
        return build_method(settings_from(values), costs).plan(layout, 0)

    def predicted(plan: Any) -> Callable[[], object]:
        return lambda: predict_plan(plan, layout, costs).iteration

    sparse = {"name": "lags", "density": subject.density}
    dense_layers, lags_layers = planned(name="dense", messages="layer"), planned(**sparse, messages="layer")
    return {
        "plan given: dense, layer-wise": predicted(dense_layers),
        "plan given: SLGS": predicted(planned(name="slgs", density=subject.density)),
        "plan given: LAGS, layer-wise": predicted(lags_layers),
        "plan given: LAGS, merged": predicted(planned(**sparse)),
        "merging: dense": lambda: merge(dense_layers, layout, costs),
        "merging: LAGS": lambda: merge(lags_layers, layout, costs),
        f"all {len(TITLES)} plans of suite predict": lambda: predictions(subject, costs.network),
    }

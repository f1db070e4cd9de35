"""Checks of one number a run, and of what methods observe."""

from dataclasses import replace

import pandas as pd
import pytest

from suite.claims.judge import judge
from suite.claims.measures import Tables
from suite.claims.model import Claim, RunCheck

SEEDS = range(3)


def tables() -> Tables:
    """Method b ends at 2 from 8 after an epoch and sends a tenth of the bytes of a, which ends at 1 from 4."""
    runs, epochs, observed = [], [], []
    for factor, method in ((1.0, "a"), (2.0, "b")):
        for seed in SEEDS:
            keys = {"experiment": "e", "method": method, "seed": seed}
            runs.append(keys | {
                "final": factor * (1 + seed / 100), "train_loss": 3 * factor, "bytes_sent": 10 ** (4 - factor),
                "iterations": 40, "hidden_share": None, "run_id": f"{method}/{seed}",
            })  # fmt: skip
            epochs += [keys | {"epoch": n, "iteration": 20 * n, "metric": "test_loss", "value": factor * value}
                       for n, value in ((1, 4.0), (2, 1 + seed / 100))]  # fmt: skip
            observed += [
                keys
                | {"segment": segment, "quantity": quantity, "points": points, "mean": mean * factor, "above_0": above}
                for segment, quantity, points, mean, above in (
                    ("x", "xi", 10, 0.1, 10), ("y", "xi", 30, 0.5, 0), ("x", "other", 10, 99.0, 10),
                )
            ]  # fmt: skip
    empty = [pd.DataFrame()] * 4
    planned = pd.DataFrame(
        [(r["experiment"], r["method"], r["seed"]) for r in runs], columns=["experiment", "method", "seed"]
    )
    return Tables(
        pd.DataFrame(runs), *empty, epochs=pd.DataFrame(epochs), observations=pd.DataFrame(observed), planned=planned
    )


def check(**settings) -> RunCheck:
    return RunCheck(**{"name": "n", "experiment": "e", "method": "b", "expected": "e", "low": 0} | settings)


def judged(found: Tables, **settings) -> dict:
    return judge(Claim(id="X", text="t", source="s", judged_by=("p",), checks=(check(**settings),)), "p", found)


@pytest.mark.parametrize(
    "settings, value",
    [
        ({"measure": "value"}, 2.02),
        ({"measure": "value", "of": "train_loss"}, 6.0),
        ({"measure": "value", "epoch": 1}, 8.0),
        ({"measure": "ratio", "against": "a", "of": "bytes_sent"}, 0.1),
        ({"measure": "ratio", "against": "a", "of": "iterations"}, 1.0),
        ({"measure": "difference", "against": "a", "epoch": 1}, 4.0),
        ({"measure": "difference", "against": "a"}, 1.01),
        ({"measure": "observed", "quantity": "xi"}, 0.8),
        ({"measure": "observed", "quantity": "xi", "against": "a"}, 0.4),
        ({"measure": "observed", "quantity": "xi", "statistic": "share_above_0", "scale": 100}, 25.0),
    ],
)
def test_numbers(settings: dict, value: float):
    (out,) = judged(tables(), **settings)["checks"]
    assert out["value"] == pytest.approx(value) and out["count"] == 3 and out["evidence"] == "runs"
    assert out["runs"][:3] == ["b/0", "b/1", "b/2"]


def test_bounds_decide():
    settings = {"measure": "ratio", "against": "a", "of": "bytes_sent", "low": None}
    assert judged(tables(), high=0.2, **settings)["verdict"] == "reproduced"
    assert judged(tables(), high=0.05, **settings)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    "settings",
    [{"measure": "value", "epoch": 3}, {"measure": "observed", "quantity": "unknown"},
     {"measure": "observed", "quantity": "xi", "against": "c"}],
)  # fmt: skip
def test_without_the_number_nothing_is_judged(settings: dict):
    out = judged(tables(), **settings)
    assert out["verdict"] == "not judged" and out["checks"][0]["value"] is None


def test_a_seed_that_is_not_finished_leaves_it_open():
    found = tables()
    lacking = replace(found, runs=found.runs[found.runs["run_id"] != "b/2"])
    out = judged(lacking, measure="value")
    assert out["verdict"] == "not judged" and "2 of 3 seeds finished" in out["reason"]


@pytest.mark.parametrize(
    "settings, message",
    [({"measure": "observed"}, "measures observed, which needs 'quantity'"),
     ({"measure": "value", "quantity": "xi"}, "has no use for 'quantity'"),
     ({"measure": "value", "against": "a"}, "has no use for 'against'"),
     ({"measure": "delta_share", "epoch": 1}, "has no use for 'epoch'"),
     ({"measure": "delta_share", "of": "bytes_sent"}, "has no use for 'of'"),
     ({"measure": "value", "of": "bytes_sent", "epoch": 1}, "has no use for 'of'")],
)  # fmt: skip
def test_settings_of_other_measures_are_refused(settings: dict, message: str):
    with pytest.raises(ValueError, match=message):
        check(**settings)

"""Checks that take iteration times of the profile's runs: time to a goal, and ratios of predicted iterations."""

import pandas as pd
import pytest

from suite.claims.judge import judge
from suite.claims.measures import Tables
from suite.claims.model import Claim, RunCheck

SECONDS = {"dense": 0.3, "lags": 0.1, "slgs": 0.2, "adaptive_batch": 0.1}
COMPUTE = 0.05  # of them
BATCHES = {"adaptive_batch": 3}  # a worker takes in an iteration, of other methods one


def tables(curves: dict[str, list[list[float]]], metric: str = "test_accuracy", predicted: bool = True) -> Tables:
    """Runs whose test metric after each epoch of 10 iterations is given by method and seed."""
    epochs = [
        {"experiment": "e", "method": method, "seed": seed, "epoch": number, "iteration": 10 * number,
         "batches": 10 * number * BATCHES.get(method, 1), "metric": metric, "value": value}
        for method, seeds in curves.items() for seed, values in enumerate(seeds)
        for number, value in enumerate(values, start=1)
    ]  # fmt: skip
    runs = [
        {"experiment": "e", "method": method, "seed": seed, "final": values[-1], "hidden_share": None,
         "run_id": f"{method}/{seed}"}
        for method, seeds in curves.items() for seed, values in enumerate(seeds)
    ]  # fmt: skip
    times = [("e", method, "10gbe", seconds, COMPUTE) for method, seconds in SECONDS.items()] if predicted else []
    empty = [pd.DataFrame()] * 4
    return Tables(
        pd.DataFrame(runs), *empty, epochs=pd.DataFrame(epochs),
        run_times=pd.DataFrame(times, columns=["experiment", "method", "network", "iteration_s", "compute_s"]),
    )  # fmt: skip


def verdict(found: Tables, **settings) -> dict:
    check = RunCheck(**{
        "name": "time", "measure": "time_to_goal", "experiment": "e", "method": "lags", "against": "dense",
        "network": "10gbe", "tolerance": 0.003, "expected": "faster", "low": 1.25,
    } | settings)  # fmt: skip
    return judge(Claim(id="X", text="t", source="s", judged_by=("laptop",), checks=(check,)), "laptop", found)


DENSE = [[0.5, 0.7, 0.8, 0.801]] * 3


def test_time_to_the_goal_is_iterations_times_seconds():
    """Dense first comes within 0.3 points of its end in epoch 3, LAGS in epoch 4 with iterations a third as long."""
    out = verdict(tables({"dense": DENSE, "lags": [[0.4, 0.6, 0.79, 0.799], [0.4, 0.6, 0.79, 0.81], [0.8] * 4]}))
    (check,) = out["checks"]
    assert check["name"] == "time, 10 GbE" and check["count"] == 3
    assert check["value"] == pytest.approx((9 / 4 + 9 / 4 + 9) / 3)
    assert check["runs"] == ["lags/0", "lags/1", "lags/2", "dense/0", "dense/1", "dense/2"]


def test_never_reaching_it_is_not_reproduced():
    out = verdict(tables({"dense": DENSE, "lags": [[0.4, 0.6, 0.7, 0.75]] * 3}))
    assert out["verdict"] == "not reproduced" and out["checks"][0]["value"] == 0
    assert "LAGS-SGD never gets there in 3 of 3 seeds" in out["reason"]


def test_one_seed_that_never_gets_there_is_said():
    out = verdict(tables({"dense": DENSE, "lags": [[0.8] * 4, [0.8] * 4, [0.7] * 4]}))
    assert "never gets there in 1 of 3 seeds" in out["reason"]


def test_where_only_the_other_never_gets_there_its_whole_run_counts():
    found = tables({"dense": DENSE, "lags": [[0.6, 0.8, 0.8, 0.8]] * 3, "slgs": [[0.7] * 4] * 3})
    (check,) = verdict(found, against="slgs")["checks"]
    assert check["value"] == pytest.approx(40 * 0.2 / (20 * 0.1))


def test_a_perplexity_has_to_fall():
    curves = {"dense": [[300, 200, 100.0]] * 3, "lags": [[250, 102, 101.0]] * 3}
    (check,) = verdict(tables(curves, "test_perplexity"), tolerance=0.025)["checks"]
    assert check["value"] == pytest.approx(30 * 0.3 / (20 * 0.1))


def test_every_batch_of_an_iteration_is_computed():
    (check,) = verdict(tables({"dense": DENSE, "adaptive_batch": DENSE}), method="adaptive_batch")["checks"]
    assert check["value"] == pytest.approx(0.3 / (3 * 0.05 + 0.05))


def test_without_predictions_nothing_is_judged():
    out = verdict(tables({"dense": DENSE, "lags": DENSE}, predicted=False))
    assert out["verdict"] == "not judged"
    assert "iterations of experiment e were not predicted on 10 GbE" in out["reason"]


@pytest.mark.parametrize("high, expected", [(1.05, "reproduced"), (0.3, "not reproduced")])
def test_a_ratio_of_iterations_is_a_prediction(high: float, expected: str):
    settings = {"measure": "iteration_ratio", "tolerance": None, "low": None, "high": high}
    out = verdict(tables({"dense": DENSE, "lags": DENSE}), **settings)
    (check,) = out["checks"]
    assert out["verdict"] == expected and check["evidence"] == "predicted" and check["interval"] is None
    assert check["value"] == pytest.approx(1 / 3) and "(predicted)" in out["reason"]

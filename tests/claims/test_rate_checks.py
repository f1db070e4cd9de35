"""The order of convergence: slopes of squared gradient norms over the lengths of runs."""

import numpy as np
import pandas as pd
import pytest

from suite.claims.judge import judge
from suite.claims.measures import Tables
from suite.claims.model import Claim, RunCheck
from suite.record.rate import METRIC, rate_points, slopes

LENGTHS = (100, 400, 1600)


def tables(slope_of: dict[str, float], seeds: int = 3, lacking: tuple[str, int] | None = None) -> Tables:
    """Runs whose mean squared gradient norm falls with exactly the given slope, a little less or more by seed."""
    runs, epochs, planned = [], [], []
    for name, slope in slope_of.items():
        for length in LENGTHS:
            for seed in range(seeds):
                keys = {"experiment": "rate", "method": f"{name}-{length}", "seed": seed}
                planned.append(keys)
                if (f"{name}-{length}", seed) == lacking:
                    continue
                facts = {"method_name": name, "label": name, "metric": METRIC, "iterations": length}
                runs.append(keys | facts | {"run_id": f"{name}-{length}/{seed}"})
                middle = length ** (slope + 0.001 * seed)
                epochs += [keys | {"metric": METRIC, "value": middle * factor} for factor in (0.5, 1.0, 1.5)]
    frames = [pd.DataFrame(rows) for rows in (runs, epochs, planned)]
    none = pd.DataFrame()
    return Tables(frames[0], none, none, none, none, epochs=frames[1], planned=frames[2])


def verdict(found: Tables, **check) -> dict:
    settings = {"name": "slope", "measure": "rate", "experiment": "rate", "method": "lags", "expected": "-1/2"}
    claim = Claim(id="X", text="t", source="s", judged_by=("laptop",), checks=(RunCheck(**(settings | check)),))
    return judge(claim, "laptop", found)


@pytest.mark.parametrize("slope", [-0.3, -0.5, -1.0])
def test_the_slope_of_a_power_is_its_exponent(slope: float):
    found = tables({"lags": slope}, seeds=1)
    points = rate_points(found.runs, found.epochs)
    assert len(points) == len(LENGTHS) and np.allclose(points["least"], points["mean"] / 2)
    (row,) = slopes(points).to_dict("records")
    assert row["mean"] == pytest.approx(slope) and row["least"] == pytest.approx(slope)


def test_one_length_has_no_slope():
    found = tables({"lags": -0.5}, seeds=1)
    points = rate_points(found.runs, found.epochs)
    assert slopes(points[points["iterations"] == LENGTHS[0]]).empty


def test_a_steep_slope_is_the_claimed_order_and_a_flat_one_is_not():
    assert verdict(tables({"lags": -0.55}), high=-0.45)["verdict"] == "reproduced"
    assert verdict(tables({"lags": -0.25}), high=-0.45)["verdict"] == "not reproduced"


def test_beside_dense_the_difference_counts():
    found = tables({"lags": -0.3, "dense": -0.32})
    out = verdict(found, against="dense", high=0.1)
    assert out["verdict"] == "reproduced" and out["checks"][0]["value"] == pytest.approx(0.02)
    assert len(out["checks"][0]["runs"]) == 18
    assert verdict(tables({"lags": -0.3, "dense": -0.5}), against="dense", high=0.1)["verdict"] == "not reproduced"


def test_a_length_that_is_not_finished_decides_nothing():
    out = verdict(tables({"lags": -0.55}, lacking=("lags-1600", 2)), high=-0.45)
    assert out["verdict"] == "not judged" and "2 of 3 seeds finished" in out["reason"]


def test_without_any_run_there_is_nothing_to_judge():
    found = tables({"dense": -0.5})
    assert verdict(found, high=-0.45)["verdict"] == "not judged"

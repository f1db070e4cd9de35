"""Checks that predict iterations of published models with any method's settings."""

import pytest

from helpers import ROOT
from suite.claims.judge import judge
from suite.claims.measures import Tables
from suite.claims.model import Claim, PredictedCheck
from suite.claims.times import values_predicted
from suite.errors import ConfigError
from suite.speed.networks import network_at
from suite.speed.paper import PLANS
from suite.speed.predictions import predictions
from suite.speed.subject import read_subject

EMPTY = Tables(*[None] * 5)


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def check(**settings) -> PredictedCheck:
    return PredictedCheck(**{
        "name": "gain", "model": "ResNet-50", "network": "1gbe", "workers": 16, "expected": "e", "low": 1.0,
        "method": {"name": "lags", "density": 0.001}, "against": {"name": "dense"},
    } | settings)  # fmt: skip


def value(**settings) -> float:
    return float(values_predicted(check(**settings)).values.item())


def test_it_is_the_ratio_of_the_table_of_predictions():
    titles = (PLANS["dense"], PLANS["lags"])
    dense, lags = predictions(read_subject("ResNet-50"), network_at("1gbe", 16), titles)
    assert value() == pytest.approx(dense.timeline.iteration / lags.timeline.iteration, rel=1e-12)


def test_relative_to_a_smaller_world():
    sparse = {"method": {"name": "slgs", "density": 0.001}}
    expected = value(workers=32, **sparse) / value(workers=4, **sparse)
    assert value(workers=32, relative_to_workers=4, **sparse) == pytest.approx(expected)


def test_low_rank_methods_know_the_shapes():
    acp = {"name": "acp_sgd", "rank": 4}
    assert value(method=acp, against={"name": "power_sgd", "rank": 4}) > 1
    assert value(method=acp, against=acp) == 1


def test_one_value_decides():
    def verdict(**settings) -> dict:
        return judge(Claim(id="X", text="t", source="s", judged_by=("p",), checks=(check(**settings),)), "p", EMPTY)

    out = verdict()
    (only,) = out["checks"]
    assert out["verdict"] == "reproduced" and only["name"] == "gain, ResNet-50, 1 GbE, 16 workers"
    assert (only["count"], only["evidence"], only["interval"]) == (1, "predicted", None)
    assert verdict(low=1000)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    "settings, message",
    [({"model": "ResNet-51"}, "did you mean 'ResNet-50'"), ({"network": "2gbe"}, "there is no network '2gbe'"),
     ({"method": {"name": "gtopq"}}, "did you mean 'gtopk'"), ({"method": {"name": "gtopk", "density": 2}}, "density")],
)  # fmt: skip
def test_what_does_not_exist_is_refused(settings: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        value(**settings)

"""Checks of iteration times: values, models and verdicts follow from the tables of predictions and emulations."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import ROOT
from suite.claims.judge import judge
from suite.claims.measures import Tables
from suite.claims.model import Claim, RunCheck, TimeCheck, read_claims
from suite.claims.times import values_of_times
from suite.speed.published import largest_gain
from synthetic_times import ITERATIONS, MODELS, predicted, tables


@pytest.fixture(scope="module")
def found() -> Tables:
    return tables_of(True)


def tables_of(emulated: bool) -> Tables:
    made = tables(emulated)
    own = {name: made[name] for name in ("predicted", "emulated", "emulated_timeline")}
    runs = pd.DataFrame(columns=["experiment", "method", "seed", "final", "hidden_share", "run_id"])
    return Tables(runs=runs, assumption=pd.DataFrame(), **own)


def check(**settings) -> TimeCheck:
    return TimeCheck(**{
        "name": "gain", "evidence": "predicted", "measure": "speedup", "network": "1gbe", "models": tuple(MODELS),
        "over": "highest", "expected": "e", "low": 1.25,
    } | settings)  # fmt: skip


def seconds(model: str, plan: str, bandwidth: float = 1.0) -> float:
    return predicted(model, plan, bandwidth, 16)["iteration_s"]


def verdict(found: Tables, *checks, profile: str = "laptop") -> dict:
    claim = Claim(id="X", text="t", source="s", judged_by=("laptop",), not_judged="needs hosts", checks=checks)
    return judge(claim, profile, found)


def test_a_prediction_is_one_value_held_or_not(found):
    out = verdict(found, check(), check(name="loss", low=None, high=1.0))
    held, failed = out["checks"]
    ratios = {model: seconds(model, "dense, merged") / seconds(model, "LAGS, merged") for model in MODELS}
    assert held["value"] == pytest.approx(max(ratios.values())) and held["model"] == max(ratios, key=ratios.get)
    assert (held["held"], failed["held"], held["interval"], held["count"]) == (True, False, None, 1)
    assert out["verdict"] == "not reproduced" and "(predicted)" in out["reason"]


def test_emulated_values_are_iterations_with_an_interval(found):
    (out,) = verdict(found, check(evidence="emulated", models=("ResNet-50",)))["checks"]
    assert (out["count"], out["each"], out["held"]) == (ITERATIONS, "emulated iteration", True)
    assert out["interval"][0] < out["value"] < out["interval"][1]
    assert out["runs"] == [f"results/laptop/emulated/1gbe/16/ResNet-50/{method}" for method in ("dense", "lags")]
    assert out["name"] == "gain, 1 GbE, emulated"


def test_mean_over_models(found):
    (value,) = values_of_times(check(measure="saved", against="slgs", over="mean", scale=100), found).values
    each = [1 - seconds(model, "LAGS, merged") / seconds(model, "SLGS") for model in MODELS]
    assert value == pytest.approx(100 * np.mean(each))


def test_one_network_relative_to_another(found):
    own = check(models=("ResNet-50",), relative_to="10gbe")
    (value,) = values_of_times(own, found).values
    ratio = [seconds("ResNet-50", "dense, merged", g) / seconds("ResNet-50", "LAGS, merged", g) for g in (1, 10)]
    assert value == pytest.approx(ratio[0] / ratio[1])
    assert len(values_of_times(own.model_copy(update={"evidence": "emulated"}), found).runs) == 4


@pytest.mark.parametrize("communication", ["selection", "exchange"])
def test_share_of_what_pipelining_can_gain(found, communication: str):
    own = check(measure="pipelining_share", models=("ResNet-50",), communication=communication)
    (value,) = values_of_times(own, found).values
    slgs = predicted("ResNet-50", "SLGS", 1.0, 16)
    column = "select_s" if communication == "selection" else "exchange_s"
    limit = largest_gain(slgs["forward_s"], slgs["backward_s"], slgs[column])
    assert value == pytest.approx((slgs["iteration_s"] / seconds("ResNet-50", "LAGS, merged") - 1) / (limit - 1))


def test_hidden_share_is_what_does_not_lengthen_the_iteration(found):
    own = check(measure="hidden_share", models=("LSTM-PTB",), low=0)
    (value,) = values_of_times(own, found).values
    assert value == pytest.approx(predicted("LSTM-PTB", "LAGS, merged", 1.0, 16)["hidden_share"])
    assert values_of_times(own.model_copy(update={"method": "slgs"}), found).values[0] == pytest.approx(0)
    emulated = values_of_times(own.model_copy(update={"evidence": "emulated"}), found).values
    assert len(emulated) == ITERATIONS and emulated.between(0, 1).all()


def test_what_was_not_emulated_is_named_and_decides_nothing():
    nothing = tables_of(False)
    out = verdict(nothing, check(low=100.0), check(evidence="emulated"))
    assert out["verdict"] == "not judged" and out["checks"][0]["held"] is False
    assert "with Dense S-SGD on 1 GbE, 16 workers, was not emulated" in out["reason"]
    (value,) = verdict(nothing, check(network="5gbe"))["checks"]
    assert value["value"] is None and "was not predicted" in value["reason"]


def test_a_trace_without_messages_has_no_hidden_share(found):
    lacking = replace(found, emulated_timeline=found.emulated_timeline.head(0))
    out = values_of_times(check(measure="hidden_share", evidence="emulated"), lacking)
    assert out.values.empty and "no message was traced" in out.missing


def test_a_failed_emulation_outweighs_what_was_not_measured(found):
    missing = check(evidence="emulated", network="5gbe")
    out = verdict(found, check(evidence="emulated", low=100.0), missing)
    assert out["verdict"] == "not reproduced"


def test_a_check_that_stands_beside_decides_nothing(found):
    out = verdict(found, check(), check(low=100.0, beside=True))
    assert out["verdict"] == "reproduced" and [one["decides"] for one in out["checks"]] == [True, False]
    with pytest.raises(ValueError, match="at least one has to decide"):
        verdict(found, check(beside=True))


def test_two_iterations_are_too_few(found):
    few = replace(found, emulated=found.emulated[found.emulated.iteration <= 2])
    (out,) = verdict(few, check(evidence="emulated"))["checks"]
    assert out["held"] is None and out["reason"] == "2 emulated iterations, at least 3 are needed"


def test_another_profile_does_not_judge(found):
    out = verdict(found, check(), profile="smoke")
    assert out["verdict"] == "not judged" and out["reason"] == "needs hosts; profile laptop would judge it"


@given(st.lists(st.floats(0.1, 10), min_size=3, max_size=3), st.sampled_from(["lowest", "highest", "mean"]))
def test_what_counts_of_several_models(times: list[float], over: str):
    """Speed-ups of three models whose LAGS iterations take `times`, and whose dense ones take a second."""
    rows = [
        {"study": "times", "model": str(model), "network": "1gbe", "workers": 16, "selection": "published",
         "plan": plan, "method": m, "iteration_s": value} | dict.fromkeys(
             ("forward_s", "backward_s", "select_s", "exchange_s"), 0)
        for model, time in enumerate(times)
        for m, plan, value in (("dense", "dense, merged", 1.0), ("lags", "LAGS, merged", time))
    ]  # fmt: skip
    own = Tables(*[pd.DataFrame()] * 2, pd.DataFrame(rows), *[pd.DataFrame()] * 2)
    (value,) = values_of_times(check(models=("0", "1", "2"), over=over), own).values
    pick = {"lowest": min, "highest": max, "mean": np.mean}[over]
    assert value == pytest.approx(pick([1 / time for time in times]))


def test_the_stored_claims_judge_both_networks_by_both_kinds_of_evidence(found):
    claims = {claim.id: claim for claim in read_claims(ROOT / "replications" / "lags2019")}
    assert len(claims) == 16 and list(claims)[-2:] == ["A1", "A2"]
    for name in ("S1", "S2", "S3", "S9", "RQ1", "A1", "A2"):
        kinds = {(c.network, c.evidence) for c in claims[name].checks if isinstance(c, TimeCheck)}
        assert kinds == {(n, e) for n in ("1gbe", "10gbe") for e in ("emulated", "predicted")}, name
    assert {c.measure for c in claims["S9"].checks if isinstance(c, RunCheck)} == {"hidden_share"}
    for claim in claims.values():
        for own in claim.checks:
            if isinstance(own, TimeCheck):
                assert not values_of_times(own, found).values.empty, own.title

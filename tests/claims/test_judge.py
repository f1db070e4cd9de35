"""Verdicts follow from intervals over seeds, and missing evidence is never a verdict."""

import pandas as pd
import pytest

from suite.claims.judge import judge
from suite.claims.measures import Tables
from suite.claims.model import Claim, RunCheck, read_claims
from suite.errors import ConfigError


def tables(
    ours: list[float], dense: list[float], above: list[int] = (), points: int = 100, hidden: list[float] = ()
) -> Tables:
    rows = [("lags", s, v) for s, v in enumerate(ours)] + [("dense", s, v) for s, v in enumerate(dense)]
    runs = pd.DataFrame(
        [{"experiment": "e", "method": m, "seed": s, "final": v, "run_id": f"{m}/{s}"} for m, s, v in rows],
        columns=["experiment", "method", "seed", "final", "hidden_share", "run_id"],
    )
    runs.loc[: len(hidden) - 1, "hidden_share"] = hidden
    assumption = pd.DataFrame(
        [{"experiment": "e", "method": "lags", "seed": s, "points": points, "above_one": n,
          "delta_mean": 0.9 + 0.2 * (n > 50)}
         for s, n in enumerate(above)],
        columns=["experiment", "method", "seed", "points", "above_one", "delta_mean"],
    )  # fmt: skip
    return Tables(runs, assumption, *[pd.DataFrame()] * 3)


def claim(**check) -> Claim:
    settings = {"name": "gap", "measure": "difference", "experiment": "e", "method": "lags", "against": "dense",
                "expected": "close", "low": -0.3, "scale": 100, "unit": "points"} | check  # fmt: skip
    return Claim(id="X", text="t", source="s", judged_by=("laptop", "paper"), checks=(RunCheck(**settings),))


def verdict(tables_: Tables, **check) -> dict:
    return judge(claim(**check), "laptop", tables_)


def test_within_the_bound_is_reproduced():
    out = verdict(tables([0.981, 0.982, 0.983], [0.980, 0.981, 0.982]))
    (check,) = out["checks"]
    assert out["verdict"] == "reproduced" and check["value"] == pytest.approx(0.1)
    assert (check["count"], check["each"]) == (3, "seed")
    assert check["runs"] == ["lags/0", "lags/1", "lags/2", "dense/0", "dense/1", "dense/2"]


def test_beyond_the_bound_is_not_reproduced():
    out = verdict(tables([0.95, 0.951, 0.949], [0.98, 0.98, 0.98]))
    assert out["verdict"] == "not reproduced" and "at least -0.3 required" in out["reason"]


def test_too_much_spread_is_not_judged_and_says_how_many_seeds_would():
    out = verdict(tables([0.98, 0.97, 0.985], [0.98, 0.98, 0.975]))
    assert out["verdict"] == "not judged" and "3 seeds cannot decide, about" in out["reason"]


def test_two_seeds_are_too_few():
    out = verdict(tables([0.98, 0.98], [0.98, 0.98]))
    assert out["verdict"] == "not judged" and "2 seeds, at least 3 are needed" in out["reason"]


def test_pairs_need_the_same_seed():
    assert verdict(tables([0.98] * 4, [0.98] * 3))["checks"][0]["count"] == 3


def test_missing_runs_are_named():
    assert "no finished runs of experiment e" in verdict(tables([], []))["reason"]


def test_another_profile_is_not_judged_with_the_reason():
    out = judge(claim().model_copy(update={"not_judged": "needs GPUs"}), "smoke", tables([1], [1]))
    assert out["verdict"] == "not judged" and out["reason"] == "needs GPUs; profile laptop or paper would judge it"


def test_one_failed_check_outweighs_an_undecided_one():
    two = claim().model_copy(update={"checks": (claim(name="a").checks[0], claim(name="b", low=5.0).checks[0])})
    out = judge(two, "laptop", tables([0.98, 0.97, 0.985], [0.98, 0.98, 0.975]))
    assert out["verdict"] == "not reproduced" and out["reason"].startswith("b:")


@pytest.mark.parametrize("by, above, expected", [("iteration", [1, 2, 3], 98.0), ("epoch", [0, 0, 80], 200 / 3)])
def test_share_of_delta(by: str, above: list[int], expected: float):
    settings = {"measure": "delta_share", "against": None, "low": 95.0, "by": by, "unit": "%"}
    out = verdict(tables([1, 1, 1], [], above), **settings)
    assert out["checks"][0]["value"] == pytest.approx(expected)


HIDDEN = {"measure": "hidden_share", "against": None, "low": 80.0, "unit": "%"}


@pytest.mark.parametrize("hidden, expected", [([0.9, 0.93, 0.92], "reproduced"), ([0.1, 0.0, 0.05], "not reproduced")])
def test_hidden_share(hidden: list[float], expected: str):
    out = verdict(tables([0.1] * 3, [], hidden=hidden), **HIDDEN)
    assert out["verdict"] == expected and out["checks"][0]["value"] == pytest.approx(100 * sum(hidden) / 3)
    assert out["checks"][0]["runs"] == ["lags/0", "lags/1", "lags/2"]


def test_runs_without_the_value_do_not_count():
    out = verdict(tables([0.1] * 3, [], hidden=[0.9, float("nan"), 0.9]), **HIDDEN)
    assert out["verdict"] == "not judged" and out["checks"][0]["runs"] == ["lags/0", "lags/2"]
    assert "no finished runs of experiment e measured it" in verdict(tables([0.1] * 3, []), **HIDDEN)["reason"]


def test_ratio():
    out = verdict(tables([110.0, 111.0, 109.0], [100.0] * 3), measure="ratio", low=None, high=1.2, scale=1, unit="")
    assert out["verdict"] == "reproduced" and out["checks"][0]["value"] == pytest.approx(1.1)


@pytest.mark.parametrize(
    "text, message",
    [("claims: [{id: A, text: t, source: s, judged_by: []}, {id: A, text: t, source: s, judged_by: []}]", "twice"),
     ("claims: [{id: A, txt: t, source: s, judged_by: []}]", "unknown key 'txt'; did you mean 'text'?"),
     ("claims: [{id: A, text: t, source: s, judged_by: [], checks: [{name: c, evidence: emulated, measure: speedup, "
      "network: 1gbe, models: [M], over: lowest, expected: e, lo: 1}]}]", "unknown key 'lo'; did you mean 'low'?"),
     ("claims: [{id: A, text: t, source: s, judged_by: [], checks: [{name: c, evidence: emulated, measure: speedup, "
      "network: 1gbe, models: [M], over: lowest, expected: e}]}]", "check 'c' needs a bound")],
)  # fmt: skip
def test_bad_claims_files(tmp_path, text: str, message: str):
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        read_claims(tmp_path)

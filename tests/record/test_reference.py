"""Results kept in the repository, and how far new ones are from them."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from helpers import ROOT
from suite.errors import ConfigError, SuiteError
from suite.record.atomic import write_json
from suite.record.reference import REFERENCE, drift, keep

SUMMARY = {"complete": True, "iterations": 10, "data_sha256": "d", "parameters": 5, "density": 0.01}


def run(results: Path, method: str, seed: int, final: float, sha: str = "a", **facts) -> Path:
    """A finished run's folder, with the big files that are not kept."""
    folder = results / "runs" / "text" / method / str(seed)
    write_json(folder / "summary.json", SUMMARY | {"final": final, "parameters_sha256": sha} | facts)
    (folder / "config.yaml").write_text("method: {}\n")
    (folder / "checkpoint").mkdir(exist_ok=True)
    (folder / "checkpoint" / "weights.pt").write_bytes(b"0" * 10)
    (folder / "iterations.parquet").write_bytes(b"0")
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "little"
    for seed in range(3):
        run(folder, "lags", seed, 0.9 + 0.001 * seed)
    (folder / "tables").mkdir()
    (folder / "tables" / "runs.csv").write_text("run\n")
    (folder / "figures").mkdir()
    for name, size in (("small.svg", 10), ("small.png", 10), ("large.svg", 10**6), ("large.png", 10)):
        (folder / "figures" / name).write_bytes(b"0" * size)
    return folder


def test_what_is_small_is_kept_and_no_weights(results):
    target = keep(results)
    assert target == results.parent / "reference" / "little"
    kept = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    runs = {f"runs/text/lags/{seed}/{name}" for seed in range(3) for name in ("summary.json", "config.yaml")}
    assert kept == runs | {"tables/runs.csv", "figures/small.svg", "figures/large.png"}
    run(results, "lags", 0, 0.5)
    keep(results)  # in place of what was kept before
    assert json.loads((target / "runs/text/lags/0/summary.json").read_text())["final"] == 0.5
    assert not list(target.parent.glob(".*"))


def test_without_tables_there_is_nothing_to_keep(tmp_path):
    with pytest.raises(ConfigError, match="suite aggregate little"):
        keep(tmp_path / "little")


def states(results: Path) -> dict[int, str]:
    return {one.seed: one.state for one in drift(results)}


def test_the_same_bits_are_no_drift(results):
    keep(results)
    assert states(results) == dict.fromkeys(range(3), "same bits")
    table = pd.read_csv(results / "tables" / "drift.csv")
    assert list(table.state) == ["same bits"] * 3 and list(table.kept) == list(table.final)


def test_other_bits_are_judged_over_the_seeds(results):
    keep(results)
    for seed, shift in enumerate((0.001, -0.001, 0.0005)):
        run(results, "lags", seed, 0.9 + 0.001 * seed + shift, sha="b")
    assert set(states(results).values()) == {"close"}
    for seed, shift in enumerate((-0.1, -0.101, -0.099)):
        run(results, "lags", seed, 0.9 + 0.001 * seed + shift, sha="b")
    assert set(states(results).values()) == {"drifted"}
    assert all(one.p < 0.01 for one in drift(results))


def test_one_seed_cannot_be_tested(results):
    keep(results)
    for seed in (1, 2):
        (results / f"runs/text/lags/{seed}/summary.json").unlink()
    run(results, "lags", 0, 0.95, sha="b")
    assert states(results) == {0: "differs"}


def test_runs_of_other_settings_are_not_compared(results):
    keep(results)
    run(results, "lags", 1, 0.95, sha="b", iterations=20)
    assert states(results) == {0: "same bits", 1: "other settings", 2: "same bits"}


@pytest.mark.parametrize("kept", sorted(ROOT.glob("results/reference/*/runs")), ids=lambda runs: runs.parent.name)
def test_what_is_kept_here_can_be_compared_with(tmp_path, kept: Path):
    """A newcomer's runs are: the last step of `make replicate` must not stumble over what an earlier version kept."""
    name = kept.parent.name
    for place in (tmp_path / name, tmp_path / REFERENCE / name):
        shutil.copytree(kept, place / "runs")
    found = drift(tmp_path / name)
    assert found and {one.state for one in found} == {"same bits"}


def test_a_summary_of_an_earlier_version_is_compared(results):
    path = next(keep(results).glob("runs/*/*/*/summary.json"))
    summary = json.loads(path.read_text())
    del summary["density"]
    path.write_text(json.dumps(summary | {"parameters_sha256": "other"}))
    assert "other settings" not in {one.state for one in drift(results)}


def test_a_run_nobody_kept_and_a_damaged_one(results):
    keep(results)
    run(results, "dense", 0, 0.95)
    assert set(states(results)) == {0, 1, 2} and len(drift(results)) == 3
    (results / "runs/text/lags/0/summary.json").write_text("{")
    with pytest.raises(SuiteError, match="damaged"):
        drift(results)


def test_nothing_kept_is_an_empty_table(results):
    assert drift(results) == []
    assert pd.read_csv(results / "tables" / "drift.csv").empty

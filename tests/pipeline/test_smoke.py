"""The whole pipeline on its smallest profile, in a copy of the checkout; then what reruns and what does not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from helpers import copy_pipeline

RESULTS = "results/smoke"

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.pipeline]


def snakemake(checkout: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "profile=smoke", "--", *arguments]
    dashes = command.index("--")
    flags = [a for a in arguments if a.startswith("-")]
    command = command[:dashes] + flags + ["--"] + [a for a in arguments if not a.startswith("-")]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=900)


def planned(result: subprocess.CompletedProcess) -> set[str]:
    """Rules a dry run would execute."""
    assert result.returncode == 0, result.stderr
    return set(re.findall(r"^(\w+) +\d+$", result.stdout + result.stderr, re.MULTILINE)) - {"total"}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the pipeline's files with the smoke profile finished in it."""
    folder = copy_pipeline(tmp_path_factory.mktemp("checkout"))
    result = snakemake(folder)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder


def test_contract_files_are_there(checkout):
    results = checkout / RESULTS
    names = ["claims.json", "report.html", "mlflow.db", "mlartifacts", "tables/runs.csv", "figures/captions.json"]
    names += [f"tables/{name}" for name in ("selection.json", "predicted.csv", "crossings.csv", "iteration_times.csv")]
    for name in names:
        assert (results / name).exists(), name
    assert list(results.glob("figures/*.svg")) and list(results.glob("figures/*.png"))
    runs = pd.read_csv(results / "tables/runs.csv")
    assert set(runs["method_name"]) == {"dense", "slgs", "lags"} and (runs["processes"] > 1).any()


def test_delta_has_a_row_for_every_iteration_and_segment(checkout):
    for path in (checkout / RESULTS).glob("runs/*/lags/*/assumption.parquet"):
        table = pd.read_parquet(path)
        summary = json.loads((path.parent / "summary.json").read_text())
        assert len(table) == summary["iterations"] * summary["segments"] and not table.isna().any().any()


def test_iteration_times_are_predicted_and_nothing_is_emulated(checkout):
    tables = checkout / RESULTS / "tables"
    times = pd.read_csv(tables / "iteration_times.csv")
    assert len(times) == 24 and times["predicted_s"].gt(0).all() and times["emulated_s"].isna().all()
    assert set(pd.read_csv(tables / "predicted.csv")["selection"]) == {"published", "ours"}
    assert pd.read_csv(tables / "emulated.csv").empty and pd.read_csv(tables / "emulated_timeline.csv").empty


def test_every_claim_has_an_entry(checkout):
    claims = json.loads((checkout / RESULTS / "claims.json").read_text())["claims"]
    assert len(claims) == 16 and all(claim["verdict"] == "not judged" and claim["reason"] for claim in claims)


def test_nothing_to_do_afterwards(checkout):
    assert "Nothing to be done" in (out := snakemake(checkout, "-n")).stdout + out.stderr


def test_a_touched_plot_redraws_and_reports_only(checkout):
    os.utime(checkout / "plots" / "style.py")
    assert planned(snakemake(checkout, "-n")) == {"figures", "report", "all"}
    assert snakemake(checkout).returncode == 0


def test_an_edited_trainer_reruns_nothing(checkout):
    loop = checkout / "suite" / "train" / "loop.py"
    loop.write_text(loop.read_text() + "\n# a remark\n")
    assert "Nothing to be done" in (out := snakemake(checkout, "-n")).stdout + out.stderr


def test_a_killed_training_rule_continues(checkout):
    """Kill the trainer of one cell in mid-run, and the pipeline with it: the next run of the pipeline continues it."""
    spec = checkout / "replications" / "lags2019" / "experiments.yaml"
    before = spec.read_text()
    spec.write_text(before.replace("max_iterations: 6, batch_size: 4", "max_iterations: 16, batch_size: 4"))
    assert spec.read_text() != before
    folder = checkout / RESULTS / "runs" / "pydoc" / "lags" / "0"
    shutil.rmtree(folder)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "profile=smoke"]
    pipeline = subprocess.Popen(
        command, cwd=checkout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list(folder.glob("checkpoint/step-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(pipeline.pid, signal.SIGKILL)
    pipeline.wait(timeout=30)
    assert list(folder.glob("checkpoint/step-*")) and not (folder / "summary.json").exists()
    snakemake(checkout, "--unlock")
    result = snakemake(checkout)
    assert result.returncode == 0, result.stderr[-3000:]
    assert json.loads((folder / "summary.json").read_text())["resumed_at"]


def test_lint_is_clean(checkout):
    result = snakemake(checkout, "--lint")
    assert result.returncode == 0 and "Congratulations" in result.stdout + result.stderr


def test_an_unknown_profile_is_refused(checkout):
    command = [sys.executable, "-m", "snakemake", "-n", "--config", "profile=smoky"]
    result = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=120)
    assert result.returncode != 0 and "unknown profile 'smoky'; did you mean 'smoke'?" in result.stdout + result.stderr

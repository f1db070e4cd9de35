"""Resuming is bit-exact: parameters, momentum, residuals, random numbers, data position, and the recorded tables."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch

from suite.errors import SuiteError
from suite.train.checkpoint import load_checkpoint
from training import summary_of, trainer

# What a resumed run may not reproduce: times.
_CLOCKS = [
    "timestamp",
    "seconds",
    "compute_s",
    "select_s",
    "exchange_s",
    "apply_s",
    "measure_s",
    "other_s",
    "iteration_s",
]


def straight_and_broken(tiny, tmp_path: Path, **sections) -> tuple:
    """The same 20 iterations in one go, and as 10 and 10 by two trainers."""
    train = {"batch_size": 2, "checkpoint_every": 5}
    whole = trainer(tiny(train=train | {"max_iterations": 20}, **sections), tmp_path / "straight")
    whole.run()
    trainer(tiny(train=train | {"max_iterations": 10}, **sections), tmp_path / "broken").run()
    resumed = trainer(tiny(train=train | {"max_iterations": 20}, **sections), tmp_path / "broken")
    resumed.run()
    return whole, resumed


def assert_same_state(a, b) -> None:
    assert torch.equal(a.flat.vector, b.flat.vector) and torch.equal(a.optimizer.momentum, b.optimizer.momentum)
    for ours, theirs in zip(a.workers, b.workers, strict=True):
        left, right = ours.state_dict(), theirs.state_dict()
        assert left.keys() == right.keys()
        flat = [[v, *(v.values() if isinstance(v, dict) else v if isinstance(v, list) else [])] for v in left.values()]
        other = [
            [v, *(v.values() if isinstance(v, dict) else v if isinstance(v, list) else [])] for v in right.values()
        ]
        for x, y in zip(sum(flat, []), sum(other, []), strict=True):
            assert torch.equal(x, y) if isinstance(x, torch.Tensor) else isinstance(x, (dict, list)) or x == y


@pytest.mark.parametrize("method", ["dense", "slgs", "lags"])
def test_twenty_straight_equal_ten_and_ten(tiny, tmp_path, method: str):
    whole, resumed = straight_and_broken(tiny, tmp_path, method=method)
    assert resumed.resumed_at == [10]
    assert_same_state(whole, resumed)
    tables = [pd.read_parquet(tmp_path / name / "assumption.parquet") for name in ("straight", "broken")]
    pd.testing.assert_frame_equal(*tables)
    tables = [pd.read_parquet(tmp_path / name / "iterations.parquet").drop(columns=_CLOCKS, errors="ignore")
              for name in ("straight", "broken")]  # fmt: skip
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.slow
def test_batchnorm_statistics_are_part_of_it(tiny, tmp_path):
    whole, resumed = straight_and_broken(tiny, tmp_path, model={"name": "resnet20"}, data={"name": "digits"})
    assert_same_state(whole, resumed)


@pytest.mark.slow
def test_a_killed_process_continues(config_file, suite_command, tmp_path):
    """A real process killed in mid-run, then the same command again; gentler ends are in tests/faults."""
    config = config_file(train={"epochs": 40, "batch_size": 2, "checkpoint_every": 20, "max_iterations": 300})
    out = tmp_path / "run"
    command = [sys.executable, "-m", "suite", "train", str(config), "--out", str(out)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoint/step-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL and not (out / "summary.json").exists()
    again = suite_command("train", config, "--out", out)
    assert again.returncode == 0 and "continuing" in again.stdout
    straight = suite_command("train", config, "--out", tmp_path / "straight")
    assert straight.returncode == 0
    sides = [summary_of(folder) for folder in (out, tmp_path / "straight")]
    assert sides[0]["parameters_sha256"] == sides[1]["parameters_sha256"] and sides[0]["resumed_at"]
    tables = [pd.read_parquet(folder / "assumption.parquet") for folder in (out, tmp_path / "straight")]
    pd.testing.assert_frame_equal(*tables)


def two_checkpoints(tiny, folder: Path) -> list[Path]:
    trainer(tiny(train={"max_iterations": 10, "checkpoint_every": 5}), folder).run()
    return sorted((folder / "checkpoint").glob("step-*"))


@pytest.mark.parametrize("victim", ["shared.pt", "worker-0002.pt", "manifest.json"])
def test_half_a_checkpoint_is_passed_over(tiny, tmp_path, capsys, victim: str):
    older, newer = two_checkpoints(tiny, tmp_path)
    data = (newer / victim).read_bytes()
    (newer / victim).write_bytes(data[: len(data) // 2])
    found, _, complaints = load_checkpoint(tmp_path / "checkpoint", workers=4)
    assert found == older and "step-0000000010 is damaged and was passed over" in complaints[0]
    (tmp_path / "summary.json").unlink()
    run = trainer(tiny(train={"max_iterations": 10, "checkpoint_every": 5}), tmp_path)
    run.run()
    assert run.resumed_at == [5] and "passed over" in capsys.readouterr().out


def test_no_whole_checkpoint_is_said(tiny, tmp_path):
    for step in two_checkpoints(tiny, tmp_path):
        (step / "shared.pt").write_bytes(b"")
    with pytest.raises(SuiteError, match="no checkpoint in .* is whole"):
        load_checkpoint(tmp_path / "checkpoint", workers=4)


def test_tensors_go_where_the_process_computes(tiny, tmp_path):
    two_checkpoints(tiny, tmp_path)
    _, shared, _ = load_checkpoint(tmp_path / "checkpoint", 4, "meta")
    assert shared["parameters"].device.type == shared["optimizer"]["momentum"].device.type == "meta"


def test_another_kind_of_device_is_refused(tiny, tmp_path):
    worker = trainer(tiny(), tmp_path).workers[0]
    state = worker.state_dict() | {"dropout_rng": torch.zeros(16, dtype=torch.uint8)}  # as a GPU has it
    with pytest.raises(SuiteError, match="of another kind of device"):
        worker.load_state_dict(state)


def test_an_epoch_that_was_tested_twice_counts_once(tiny, tmp_path):
    """A run that ended inside of an epoch and was lengthened."""
    whole, resumed = straight_and_broken(tiny, tmp_path)
    assert whole.per_epoch > 10 and resumed.resumed_at == [10]
    straight, broken = (
        pd.read_csv(tmp_path / name / "epochs.csv").drop(columns=_CLOCKS, errors="ignore")
        for name in ("straight", "broken")
    )
    pd.testing.assert_frame_equal(broken, straight)


def test_other_workers_are_refused(tiny, tmp_path):
    two_checkpoints(tiny, tmp_path)
    with pytest.raises(SuiteError, match="made by 4 workers and this run has 8"):
        load_checkpoint(tmp_path / "checkpoint", workers=8)


def test_checkpoints_load_with_the_safe_default(tiny, tmp_path):
    *_, newest = two_checkpoints(tiny, tmp_path)
    for path in newest.glob("*.pt"):
        torch.load(path, weights_only=True)
    assert json.loads((newest / "manifest.json").read_text())["workers"] == 4


def test_a_copied_folder_resumes_elsewhere(tiny, tmp_path):
    two_checkpoints(tiny, tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    (tmp_path / "there" / "summary.json").unlink()
    run = trainer(tiny(train={"max_iterations": 12, "checkpoint_every": 5}), tmp_path / "there")
    run.run()
    assert run.resumed_at == [10] and summary_of(tmp_path / "there")["iterations"] == 12


def test_killed_between_the_last_checkpoint_and_the_summary(tiny, tmp_path):
    config = tiny(train={"max_iterations": 6})
    trainer(config, tmp_path).run()
    before = summary_of(tmp_path)
    (tmp_path / "summary.json").unlink()
    trainer(config, tmp_path).run()
    after = summary_of(tmp_path)
    assert after.pop("resumed_at") == [6] and before.pop("resumed_at") == [] and after == before

"""A run folder belongs to one configuration and one process, and its files are whole or absent."""

import json
import os

import pyarrow.parquet as pq
import pytest
import yaml

from suite.errors import ConfigError, SuiteError
from suite.record import RunFolder
from suite.record.atomic import replacing, write_json, write_text
from suite.record.recorder import Recorder
from training import summary_of, trainer

CONTRACT = [
    "config.yaml", "environment.json", "epochs.csv", "iterations.parquet", "assumption.parquet", "timeline.json",
    "summary.json", "checkpoint",
]  # fmt: skip


def claim(config, folder, **options):
    run_folder = RunFolder(folder)
    try:
        return run_folder.claim(config, **({"restart_if_changed": False} | options))
    finally:
        if hasattr(run_folder, "_lock"):
            run_folder.release()


def test_contract_files(tiny, tmp_path):
    trainer(tiny(train={"max_iterations": 6}), tmp_path).run()
    assert all((tmp_path / name).exists() for name in CONTRACT)
    assert summary_of(tmp_path)["complete"] and not list(tmp_path.rglob("*.part"))
    timeline = json.loads((tmp_path / "timeline.json").read_text())
    phases = {event["phase"] for event in timeline["events"]}
    assert timeline["iteration"] == 5 and phases >= {"forward", "backward", "select", "start", "exchange", "apply"}
    assert all(0 <= e["start"] <= e["end"] for e in timeline["events"])


def test_a_complete_run_is_left_alone(tiny, tmp_path):
    config = tiny(train={"max_iterations": 3})
    trainer(config, tmp_path).run()
    before = (tmp_path / "summary.json").read_bytes()
    assert claim(config, tmp_path) is False and (tmp_path / "summary.json").read_bytes() == before
    with pytest.raises(ConfigError, match="train.max_iterations = 3 and this one has 2"):
        claim(tiny(train={"max_iterations": 2}), tmp_path)
    assert (tmp_path / "summary.json").read_bytes() == before
    assert claim(tiny(train={"max_iterations": 5}), tmp_path) is True  # longer: there is something to do


def test_a_setting_invented_later_was_at_its_default(tiny, tmp_path):
    assert claim(tiny(), tmp_path)
    stored = yaml.safe_load((tmp_path / "config.yaml").read_text())
    del stored["compute"], stored["mode"], stored["optimizer"]["decay_chain"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(stored))
    (tmp_path / "kept").touch()
    assert claim(tiny(), tmp_path, restart_if_changed=True) and (tmp_path / "kept").exists()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(stored))
    with pytest.raises(ConfigError, match="compute.precision = float32 and this one has bfloat16"):
        claim(tiny(compute={"precision": "bfloat16"}), tmp_path)


def test_other_settings_are_refused_by_name(tiny, tmp_path):
    assert claim(tiny(), tmp_path)
    with pytest.raises(
        ConfigError, match=r"holds a run with method.density = 0.05 and this one has 0.1; choose another"
    ):
        claim(tiny(method={"name": "lags", "density": 0.1}), tmp_path)
    assert claim(
        tiny(world={"workers": 4, "processes": 2, "transport": "torch"}), tmp_path
    )  # a placement is no setting


def test_restart_clears_the_folder(tiny, tmp_path):
    trainer(tiny(train={"max_iterations": 3}), tmp_path).run()
    assert claim(tiny(method={"name": "lags", "density": 0.1}), tmp_path, restart_if_changed=True)
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "config.yaml"}


def test_two_processes_do_not_share_a_folder(tiny, tmp_path):
    first = RunFolder(tmp_path)
    first.claim(tiny(), restart_if_changed=False)
    with pytest.raises(SuiteError, match="another process is training in"):
        claim(tiny(), tmp_path)
    first.release()
    assert claim(tiny(), tmp_path)


def test_nothing_half_written(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "whole")
    with pytest.raises(RuntimeError), replacing(path) as aside:
        aside.write_text("ha")
        raise RuntimeError
    assert path.read_text() == "whole" and os.listdir(path.parent) == ["file.txt"]
    with pytest.raises(ValueError):
        write_json(path, float("nan"))
    assert path.read_text() == "whole"


def test_recorder_forgets_what_came_after_a_checkpoint(tmp_path):
    recorder = Recorder(tmp_path / "parts")
    for iteration in range(1, 7):
        recorder.add(
            "assumption", {"iteration": iteration, "segment": "x", "d": 4, "k": 1, "delta": None, "norm_ratio": 0.5}
        )
        if iteration % 2 == 0:
            recorder.flush(iteration)
    recorder.rewind(4)
    assert recorder.read("assumption")["iteration"].to_pylist() == [1, 2, 3, 4]
    recorder.add("epochs", {"epoch": 1, "metric": "test_accuracy", "value": 0.5})
    recorder.flush(4)
    recorder.finish(tmp_path)
    table = pq.read_table(tmp_path / "assumption.parquet")
    assert table.num_rows == 4 and table["delta"].null_count == 4
    assert (tmp_path / "epochs.csv").read_text().splitlines()[0].startswith("epoch,iteration,lr,train_loss")

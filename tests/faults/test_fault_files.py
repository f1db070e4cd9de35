"""Files that cannot be written, are damaged, or whose writer dies."""

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import time

import pandas as pd
import pytest
import torch
import yaml
from fault_runs import ENDLESS, VIRTUAL, settings
from fault_table import fault
from writer import train_in

from helpers import require
from suite.config import validate_config
from suite.errors import SuiteError
from suite.train.checkpoint import load_checkpoint
from training import trainer


@pytest.fixture
def two_checkpoints(tmp_path):
    """A run that ended at iteration 40, with the checkpoints of 20 and 40."""
    trainer(validate_config(settings(world=VIRTUAL, train={"max_iterations": 40})), tmp_path / "run").run()
    (tmp_path / "run" / "summary.json").unlink()
    older, newer = sorted((tmp_path / "run" / "checkpoint").glob("step-*"))
    return tmp_path / "run", older, newer


def passed_over(run, older, row, loses_nothing, capsys) -> None:
    step, _, complaints = load_checkpoint(run / "checkpoint", workers=4)
    assert step == older
    row.seen = complaints[0]
    assert row.seen == "checkpoint step-0000000040 is damaged and was passed over"
    row.lost = loses_nothing(run)
    assert row.seen in capsys.readouterr().out and "iteration 20" in row.lost


@fault("the newest checkpoint is truncated", "the one before is used, and the user told")
def test_a_truncated_checkpoint(two_checkpoints, row, loses_nothing, capsys):
    run, older, newer = two_checkpoints
    os.truncate(newer / "worker-0002.pt", 1000)
    passed_over(run, older, row, loses_nothing, capsys)


@fault("one byte of the newest checkpoint is another", "the one before is used, and the user told")
def test_one_other_byte(two_checkpoints, row, loses_nothing, capsys):
    run, older, newer = two_checkpoints
    data = bytearray((newer / "shared.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (newer / "shared.pt").write_bytes(data)
    passed_over(run, older, row, loses_nothing, capsys)


@fault("both checkpoints are damaged", "one sentence names both and the way out; nothing is trained in silence")
def test_no_whole_checkpoint(two_checkpoints, row, attempt):
    folder, *steps = two_checkpoints
    for step in steps:
        (step / "shared.pt").write_bytes(b"")
    run = attempt(world=VIRTUAL)
    run.start()
    with row.timed():
        row.seen = run.end(1)
    assert run.out == folder and "step-0000000040 is damaged" in row.seen and "step-0000000020 is damaged" in row.seen
    assert row.seen.endswith("delete that folder to start again")
    row.lost = "what the damage destroyed: the run so far"


@fault("one rank's disk takes no more while a checkpoint is written (file size limit of the kernel)",
       "all are ended, the sentence says where and why, the checkpoint before is intact")  # fmt: skip
def test_a_full_disk(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(ENDLESS)
    run.wait_for()
    resource.prlimit(run.ranks()[1].pid, resource.RLIMIT_FSIZE, (4096, 4096))
    with row.timed():
        run.end(1)
    row.seen = state_of(run.out).reason.replace(str(run.out), "RUN")
    assert "RUN could not be written" in row.seen and "(File too large)" in row.seen and "is intact" in row.seen
    step, _, complaints = load_checkpoint(run.out / "checkpoint", workers=4)
    assert not complaints
    row.lost = loses_nothing(run.out)


@fault("out of file descriptors in mid-run", "the sentence says so, the checkpoint before is intact")
def test_no_descriptor_is_left(attempt, row, loses_nothing):
    run = attempt(world=VIRTUAL)
    run.start(ENDLESS)
    run.wait_for()
    resource.prlimit(run.process.pid, resource.RLIMIT_NOFILE, (3, 3))
    with row.timed():
        row.seen = run.end(1)
    assert "could not be written" in row.seen and "(Too many open files)" in row.seen
    row.lost = loses_nothing(run.out)


@fault("SIGKILL at 12 random moments, with a checkpoint every iteration",
       "every file is whole or absent, every resume continues, the end is the undisturbed one")  # fmt: skip
def test_killed_at_random_moments(row, tmp_path, loses_nothing):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["writer"])
    values = settings(world=VIRTUAL, train={"checkpoint_every": 1})
    draw, steps = random.Random(6), [0]
    folder = tmp_path / "run"
    for _ in range(12):
        process = context.Process(target=train_in, args=(folder, values))
        process.start()
        deadline = time.monotonic() + 120
        while _newest(folder) <= steps[-1]:
            assert time.monotonic() < deadline and process.is_alive(), "it does not get on"
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        with row.timed():
            process.join(30)
        assert process.exitcode == -signal.SIGKILL, "it ended before it was killed"
        steps.append(_all_whole(folder))
    assert steps == sorted(set(steps)), "a kill cost a checkpoint"
    row.seen = f"newest checkpoints after the kills: {', '.join(map(str, steps[1:]))}; no damaged file"
    row.lost = loses_nothing(folder)
    assert not list(folder.rglob(".*.part"))


def _newest(folder) -> int:
    return max((int(step.name.removeprefix("step-")) for step in folder.glob("checkpoint/step-*")), default=0)


def _all_whole(folder) -> int:
    """Read every file of a run folder but those being written aside; the newest checkpoint's iteration."""
    for path in folder.rglob("*"):
        if not path.is_file() or any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".parquet":
            pd.read_parquet(path)
        elif path.suffix == ".pt":
            torch.load(path, weights_only=True)
        else:
            assert path.suffix in (".yaml", ".csv", ".log"), path
    found = load_checkpoint(folder / "checkpoint", workers=4)
    if found is None:
        return 0
    assert not found[2], found[2]
    return found[1]["iteration"]


@fault("the results folder cannot be written", "refused before anything is computed, exit code 2")
def test_a_folder_nobody_may_write_in(attempt, row, tmp_path):
    run = attempt(world=VIRTUAL)
    run.out.mkdir()
    run.out.chmod(0o555)
    prefix: list[str] = []
    if os.geteuid() == 0:  # whom permissions do not stop, unless it gives up that right
        require("setpriv", shutil.which("setpriv") is not None, "setpriv (util-linux) is not here")
        prefix = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    run.start(prefix=prefix)
    with row.timed():
        row.seen = run.end(2)
    assert row.seen == "the run folder RUN cannot be written (Permission denied); choose one with --out"
    assert not list(run.out.iterdir())
    row.lost = "nothing (not begun)"


@fault(
    "the data's folder is removed in mid-run",
    "the run goes on, as data are read once; starting again without is refused",
)
def test_data_that_go_away(attempt, row, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    for part, tokens in {"train": 929_589, "valid": 73_760, "test": 82_430}.items():
        words = ("<unk>" if i % 9999 == 0 else f"w{i % 9999}" for i in range(tokens - 1))
        (data / f"ptb.{part}.txt").write_text(" ".join(words) + "\n")
    monkeypatch.setenv("SUITE_DATA", str(data))
    monkeypatch.setenv("SUITE_CACHE", str(tmp_path / "cache"))
    run = attempt()
    config = settings(world=VIRTUAL, train={"max_iterations": 60})
    config["data"] = {"name": "ptb", "sequence_length": 5, "max_train_tokens": 8000}
    run.config.write_text(yaml.safe_dump(config))
    straight = tmp_path / "straight"
    trainer(validate_config(config), straight).run()
    run.start()
    run.wait_for()
    data.rename(tmp_path / "elsewhere")
    run.process.send_signal(signal.SIGTERM)
    run.end(128 + signal.SIGTERM)
    run.start()
    with row.timed():
        row.seen = run.end(2).replace(str(tmp_path), "…")
    assert "there is no folder of data" in row.seen
    (tmp_path / "elsewhere").rename(data)
    resumed = trainer(validate_config(config), run.out)
    resumed.run()
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in (run.out, straight)]
    assert summaries[0]["parameters_sha256"] == summaries[1]["parameters_sha256"] and resumed.resumed_at
    row.lost = f"nothing (continued from iteration {resumed.resumed_at[-1]})"


@fault("the data are others when a run continues", "refused, since the run would be of neither")
def test_other_data(two_checkpoints, row):
    folder, *_ = two_checkpoints
    run = trainer(validate_config(settings(world=VIRTUAL)), folder)
    run.data_sha256 = "0" * 64
    with row.timed(), pytest.raises(SuiteError) as error:
        run.run()
    row.seen = str(error.value).replace(str(folder), "RUN")
    assert "was trained on other data than is here now" in row.seen
    row.lost = "nothing"

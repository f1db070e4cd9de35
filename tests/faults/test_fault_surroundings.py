"""What happens around runs: clocks, keyboards, MLflow, other pipelines, many jobs at once."""

import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import mlflow
import pandas as pd
import pytest
import yaml
from fault_runs import ENDLESS, VIRTUAL, settings
from fault_table import fault
from writer import train_together

from helpers import ROOT, copy_pipeline
from suite.config.profiles import profile_cells
from suite.record.states import cell_states
from suite.record.track import track
from training import summary_of

JOBS = 20


@fault("the clock is set back by an hour in mid-run", "durations are true, time stamps never go backwards")
def test_a_clock_going_backwards(attempt, row, undisturbed):
    run = attempt(world=VIRTUAL)
    run.start(fault=("clock", 0, 30))
    with row.timed():
        run.end(0)
    rows = pd.read_parquet(run.out / "iterations.parquet")
    epochs = pd.read_csv(run.out / "epochs.csv")
    assert rows["timestamp"].is_monotonic_increasing and epochs["timestamp"].is_monotonic_increasing
    assert rows.filter(like="_s").ge(0).all().all() and 0 < summary_of(run.out)["seconds"] < row.seconds
    assert summary_of(run.out)["parameters_sha256"] == undisturbed["parameters_sha256"]
    row.seconds = 0.0
    row.seen, row.lost = f"{len(rows)} ordered time stamps, no negative duration", "nothing"


@fault("Ctrl-C", "a checkpoint at the iteration under way, exit code 130")
def test_interrupted(attempt, row, loses_nothing):
    run = attempt()
    run.start(ENDLESS)
    run.wait_for()
    run.process.send_signal(signal.SIGINT)
    with row.timed():
        row.seen = run.end(130)
    assert "the same command continues from it" in row.seen
    row.lost = loses_nothing(run.out)


@fault("Ctrl-C twice, while a rank hangs", "the second ends all at once, exit code 130")
def test_interrupted_twice(attempt, row, loses_nothing, state_of):
    run = attempt()
    run.start(fault=("loop", 1, 30))
    run.wait_for()
    time.sleep(1)
    with row.timed():
        run.process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert run.process.poll() is None
        run.process.send_signal(signal.SIGINT)
        row.seen = run.end(130)
    assert row.seen.startswith("stopped at once by a second Ctrl-C") and row.seconds < 20
    assert state_of(run.out).state == "stopped"
    row.lost = loses_nothing(run.out)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> tuple[Path, float]:
    """A profile whose 20 cells started and finished together, and the seconds they took."""
    root = tmp_path_factory.mktemp("jobs")
    base = settings(world=VIRTUAL, train={"max_iterations": 6, "checkpoint_every": 3})
    spec = {"title": "Many jobs", "base": base, "methods": {"lags": {}}, "seeds": list(range(JOBS))}
    (root / "replications" / "x").mkdir(parents=True)
    (root / "replications" / "x" / "experiments.yaml").write_text(
        yaml.safe_dump({"profiles": {"many": {"text": spec}}})
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["writer"])
    barrier = context.Barrier(JOBS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        cells = profile_cells("many")
    results = root / "results" / "many"
    began = time.monotonic()
    started = [
        context.Process(target=train_together, args=(results / "runs" / cell.folder, cell.config, barrier))
        for cell in cells
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(300)
    assert [process.exitcode for process in started] == [0] * JOBS
    return results, time.monotonic() - began


@pytest.fixture
def at_jobs(jobs, monkeypatch) -> Path:
    monkeypatch.chdir(jobs[0].parents[1])
    return jobs[0]


def imported(results: Path) -> int:
    """Finished runs in the profile's database."""
    client = mlflow.MlflowClient(f"sqlite:///{results}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name(results.name).experiment_id])
    assert all(client.list_artifacts(run.info.run_id) for run in runs)
    return sum(run.info.status == "FINISHED" for run in runs)


@fault("20 jobs start and finish at the same moment", "one import, 20 complete runs, no lock error")
def test_many_jobs(jobs, at_jobs, row):
    assert track(at_jobs) == {"added": JOBS, "replaced": 0, "unchanged": 0} and imported(at_jobs) == JOBS
    assert {state.state for state in cell_states(at_jobs)} == {"done"}
    row.seconds = jobs[1]
    row.seen, row.lost = f"{JOBS} runs in MLflow, all finished", "nothing"


def tracking(*arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "suite", "track", "many", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@fault(
    "two imports into MLflow at once, where there is no database yet", "one waits for the other; no table is made twice"
)
def test_two_imports(at_jobs, row):
    (at_jobs / "mlflow.db").unlink(missing_ok=True)
    with row.timed():
        both = [tracking(), tracking()]
        outputs = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    said = sorted(output.splitlines()[-1] for output in outputs)
    assert said == [f"0 added, 0 replaced, {JOBS} unchanged", f"{JOBS} added, 0 replaced, 0 unchanged"]
    assert imported(at_jobs) == JOBS
    row.seen, row.lost = "; ".join(said), "nothing"


@fault("MLflow's server cannot be reached", "training never asks for it; the import says so and can be repeated")
def test_no_server(at_jobs, attempt, row, tmp_path, loses_nothing):
    (tmp_path / "shadow" / "mlflow").mkdir(parents=True)
    (tmp_path / "shadow" / "mlflow" / "__init__.py").write_text("raise ImportError('there is no MLflow')")
    run = attempt(world=VIRTUAL)
    run.start(env=os.environ | {"PYTHONPATH": f"{tmp_path / 'shadow'}:{ROOT}"})
    run.end(0)  # no training process as much as imports it
    before = {path: path.stat().st_mtime_ns for path in at_jobs.glob("runs/**/*")}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with row.timed():
            process = tracking("--server", f"http://127.0.0.1:{closed.getsockname()[1]}")
            output, _ = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in output
    sentence = output.splitlines()[-1].removeprefix("suite: ")
    assert sentence.startswith("MLflow at http://127.0.0.1:") and sentence.endswith("the run folders hold everything")
    assert before == {path: path.stat().st_mtime_ns for path in at_jobs.glob("runs/**/*")}
    row.seen = re.sub(r"127\.0\.0\.1:\d+", "HOST", re.sub(r"\(.*\)", "(…)", sentence))
    row.lost = loses_nothing(run.out)


@fault("MLflow's database is damaged", "the import says so and how to rebuild it, which loses nothing")
def test_a_damaged_database(at_jobs, row):
    database = at_jobs / "mlflow.db"
    database.write_bytes(b"SQLite format 3\0" + b"no such thing" * 1000)
    with row.timed():
        process = tracking()
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in output, output
    sentence = output.splitlines()[-1].removeprefix("suite: ")
    assert f"delete {Path('results/many/mlflow.db')} to rebuild it" in sentence
    database.unlink()
    output, _ = tracking().communicate(timeout=300)  # a process that has not met the damaged file
    assert output.splitlines()[-1].startswith(f"{JOBS} added")
    row.seen, row.lost = re.sub(r"\(.*\)", "(…)", sentence), "nothing (imported anew)"


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A copy of the pipeline with a profile of three cells, the second of which cannot succeed."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    copy_pipeline(folder)
    base = settings(world=VIRTUAL, train={"max_iterations": 30})
    lags = {"method": base.pop("method")}
    methods = {"dense": {"method": {"name": "dense"}}, "too-fast": lags | {"optimizer": {"lr": 1e30}}, "lags": lags}
    spec = {"title": "Three cells", "base": base, "methods": methods, "seeds": [0]}
    experiments = min(folder.glob("replications/*/experiments.yaml"))  # whose claims and published numbers stay
    experiments.write_text(yaml.safe_dump({"profiles": {"three": {"text": spec}}}))
    return folder


def pipeline(checkout: Path, *targets: str, options: Sequence[str] = ()) -> subprocess.Popen:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options, "--config", "profile=three", "--", *targets]
    env = os.environ | {"PYTHONPATH": str(checkout)}
    return subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


@fault("two pipelines in one folder", "the second is refused, the first goes on")
@pytest.mark.pipeline
def test_two_pipelines(checkout, row):
    wanted = "results/three/runs/text/dense/0/summary.json"
    first = pipeline(checkout, wanted)
    deadline = time.monotonic() + 120
    while not list(checkout.glob(".snakemake/locks/*")):
        assert first.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    second = pipeline(checkout, wanted)
    with row.timed():
        output, _ = second.communicate(timeout=300)
    assert second.returncode != 0 and "Directory cannot be locked" in output, output
    whole, _ = first.communicate(timeout=300)
    assert first.returncode == 0 and (checkout / wanted).exists(), whole
    row.seen, row.lost = "Snakemake: “Directory cannot be locked”", "nothing (the first one finished)"


@fault("a cell of the pipeline diverges (`snakemake --keep-going`)",
       "the others are trained; `so_far` reports on them and names the cell")  # fmt: skip
@pytest.mark.pipeline
def test_a_cell_that_fails(checkout, row):
    cells = [f"results/three/runs/text/{method}/0/summary.json" for method in ("dense", "too-fast", "lags")]
    training = pipeline(checkout, *cells, options=["--keep-going"])
    with row.timed():
        output, _ = training.communicate(timeout=600)
    assert training.returncode != 0 and "-- so_far" in output
    assert [(checkout / cell).exists() for cell in cells] == [True, False, True]
    report = pipeline(checkout, "so_far")
    output, _ = report.communicate(timeout=600)
    log = checkout / "results/three/logs/so-far.log"
    assert report.returncode == 0, output + log.read_text()
    states = pd.read_csv(checkout / "results/three/tables/states.csv").set_index("method")
    assert states["state"].to_dict() == {"dense": "done", "too-fast": "diverged", "lags": "done"}
    assert "gradients were not finite" in states.loc["too-fast", "last_lines"]
    runs = pd.read_csv(checkout / "results/three/tables/runs.csv")
    assert list(runs["method"]) == ["dense", "lags"]
    page = (checkout / "results/three/report.html").read_text()
    assert "2 of 3 cells are done" in page and "diverged" in page
    row.seen, row.lost = (
        f"2 of 3 cells are done; too-fast: {states.loc['too-fast', 'reason']}",
        "the cell, which is named",
    )

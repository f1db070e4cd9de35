"""Tables and MLflow from run folders: repeatable, honest about damage, one writer."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import yaml

from helpers import tiny_settings
from suite.config import validate_config
from suite.config.profiles import profile_cells
from suite.errors import SuiteError
from suite.record.aggregate import aggregate
from suite.record.track import track
from training import trainer


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """A finished little profile: two methods, two seeds."""
    root = tmp_path_factory.mktemp("grid")
    base = tiny_settings() | {"train": {"epochs": 2, "max_iterations": 30, "batch_size": 2, "checkpoint_every": 20}}
    methods = {name: {"method": name} for name in ("dense", "lags")}
    spec = {"title": "A little text", "base": base, "methods": methods, "seeds": [0, 1]}
    (root / "replications" / "x").mkdir(parents=True)
    (root / "replications" / "x" / "experiments.yaml").write_text(
        yaml.safe_dump({"profiles": {"little": {"text": spec}}})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for cell in profile_cells("little"):
            trainer(validate_config(cell.config), root / "results" / "little" / "runs" / cell.folder).run()
    return root / "results" / "little"


@pytest.fixture(autouse=True)
def at_grid(results, monkeypatch):
    monkeypatch.chdir(results.parents[1])


@contextmanager
def replaced(path: Path, old: str, new: str) -> Iterator[None]:
    """A file with other words in it, for a while."""
    before = path.read_text()
    assert old in before
    path.write_text(before.replace(old, new, 1))
    try:
        yield
    finally:
        path.write_text(before)


def test_tables(results):
    tables = {path.stem: pd.read_csv(path) for path in aggregate(results)}
    assert set(tables) == {
        "runs", "epochs", "losses", "phases", "timeline", "assumption", "delta_by_kind", "assumption_iterations",
        "states", "observations",
    }  # fmt: skip
    assert len(tables["runs"]) == 4 and tables["runs"]["final"].notna().all()
    assert set(tables["assumption"]["method"]) == {"lags"}
    first = tables["assumption"][tables["assumption"]["seed"] == 0]
    assert first["points"].sum() == len(tables["assumption_iterations"])
    for column in ("points", "above_one"):
        assert tables["delta_by_kind"][column].sum() == tables["assumption"][column].sum()
    iterations = pd.read_parquet(results / "runs/text/lags/0/assumption.parquet")
    assert len(iterations) == 30 * iterations["segment"].nunique()
    assert tables["phases"].groupby(["method", "seed"])["phase"].nunique().eq(6).all()


def test_runs_and_epochs_of_earlier_versions_had_a_round_an_iteration(results):
    """They did not say how workers exchanged, and nothing is made up for them."""

    def tables() -> dict[str, pd.DataFrame]:
        return {path.stem: pd.read_csv(path) for path in aggregate(results) if path.stem in ("runs", "epochs")}

    now = tables()
    assert now["runs"]["rounds"].tolist() == [30] * 4 and now["epochs"]["rounds"].max() == 30
    assert set(now["runs"]["collective"]) == {"ring all-reduce", "all-gather"}
    assert now["runs"].groupby("method")["own_bytes"].first().gt(0).to_dict() == {"dense": False, "lags": True}
    folder = results / "runs/text/lags/0"
    before = {name: (folder / name).read_text() for name in ("summary.json", "epochs.csv")}
    try:
        summary = json.loads(before["summary.json"])
        for name in ("rounds", "own_bytes", "collective", "all_reduce"):
            del summary[name]
        (folder / "summary.json").write_text(json.dumps(summary))
        epochs = pd.read_csv(folder / "epochs.csv").drop(columns=["rounds", "batches"])
        epochs.to_csv(folder / "epochs.csv", index=False)
        old = tables()
    finally:
        for name, text in before.items():
            (folder / name).write_text(text)
    pd.testing.assert_frame_equal(old["epochs"], now["epochs"])
    run = old["runs"].set_index("run").loc["little/text/lags/0"]
    assert run["rounds"] == 30 and run[["own_bytes", "collective", "all_reduce"]].isna().all()


def test_losses_are_means_of_neighbours_where_there_are_many(results, monkeypatch):
    run = pd.read_parquet(results / "runs/text/lags/0/iterations.parquet")

    def table() -> pd.DataFrame:
        rows = next(pd.read_csv(path) for path in aggregate(results) if path.stem == "losses")
        return rows[(rows["method"] == "lags") & (rows["seed"] == 0)]

    assert table()["loss"].tolist() == pytest.approx(run["loss"].tolist())
    monkeypatch.setattr("suite.record.aggregate._DRAWN_ITERATIONS", 10)
    assert table()["iteration"].tolist() == list(range(3, 31, 3))
    assert table()["loss"].iloc[0] == pytest.approx(run["loss"][:3].mean())


def test_runs_of_one_task_differ_in_method_and_seed_alone(results):
    def runs() -> pd.DataFrame:
        return next(pd.read_csv(path) for path in aggregate(results) if path.stem == "runs").set_index("run")

    before = runs()
    assert before["task"].nunique() == 1 and before["ratio_cap"].dropna().unique().tolist() == [1000.0]
    with replaced(results / "runs/text/lags/1/config.yaml", "lr: 1.0", "lr: 0.5"):
        assert runs()["task"].value_counts().tolist() == [3, 1]


def test_timelines_are_of_runs_on_several_processes(results):
    def table() -> pd.DataFrame:
        return next(pd.read_csv(path) for path in aggregate(results) if path.stem == "timeline")

    assert table().empty
    folder = results / "runs/text/lags/0"
    with replaced(folder / "config.yaml", "processes: 1", "processes: 4"):
        rows, traced = table(), json.loads((folder / "timeline.json").read_text())["events"]
        assert set(rows["method"]) == {"lags"} and set(rows["label"]) == {"LAGS-SGD"}
        assert list(rows["phase"]) == [event["phase"] for event in traced] and set(rows["kind"]) == {"traced"}
        assert rows["end"].tolist() == pytest.approx([event["end"] for event in traced])
        predicted = '"predicted": [{"phase": "forward", "label": "", "start": 0.0, "end": 0.5}], "events": '
        with replaced(folder / "timeline.json", '"events": ', predicted):
            last = table().iloc[-1]
            assert last["kind"] == "predicted" and last["end"] == 0.5 and pd.isna(last["rank"])


def test_random_data_give_no_scores(results):
    with replaced(results / "runs/text/lags/0/config.yaml", "name: pydoc", "name: synthetic"):
        tables = {path.stem: pd.read_csv(path) for path in aggregate(results)}
    runs = tables["runs"].set_index(["method", "seed"])
    assert list(runs.index[runs["final"].isna()]) == [("lags", 0)] and runs["seconds"].notna().all()
    assert ("lags", 0) not in set(zip(tables["epochs"]["method"], tables["epochs"]["seed"], strict=True))


def test_medians_leave_out_the_first_iterations(results):
    folder = results / "runs/text/dense/0"
    seconds = pd.read_parquet(folder / "iterations.parquet")["iteration_s"]
    found = json.loads((folder / "summary.json").read_text())["median_seconds"]["iteration"]
    assert found == pytest.approx(seconds[3:].median())


def test_tables_are_rebuilt_to_the_byte(results):
    first = [path.read_bytes() for path in aggregate(results)]
    assert [path.read_bytes() for path in aggregate(results)] == first


def test_a_damaged_table_is_named(results):
    path = results / "runs/text/lags/0/assumption.parquet"
    data = path.read_bytes()
    try:
        path.write_bytes(data[: len(data) // 2])
        with pytest.raises(SuiteError, match="assumption.parquet is missing or damaged; delete .*summary.json"):
            aggregate(results)
    finally:
        path.write_bytes(data)


def test_no_runs_is_said(tmp_path):
    with pytest.raises(SuiteError, match="no finished run"):
        aggregate(tmp_path / "little")


@pytest.mark.slow
def test_importing_twice_changes_nothing(results):
    import mlflow

    assert track(results) == {"added": 4, "replaced": 0, "unchanged": 0}
    client = mlflow.MlflowClient(f"sqlite:///{results.resolve()}/mlflow.db")
    number = client.get_experiment_by_name("little").experiment_id

    def everything():
        runs = client.search_runs([number])
        return sorted((run.info.run_id, run.data.metrics, run.data.params, run.data.tags) for run in runs)

    before = everything()
    assert track(results) == {"added": 0, "replaced": 0, "unchanged": 4} and everything() == before
    run = next(run for run in client.search_runs([number]) if run.data.tags["suite.run"] == "little/text/lags/1")
    assert run.info.status == "FINISHED" and run.data.params["method.density"] == "0.001"
    assert run.data.tags["environment.transport"] == "virtual" and run.data.tags["environment.versions.torch"]
    history = client.get_metric_history(run.info.run_id, "test_perplexity")
    epochs = pd.read_csv(results / "runs/text/lags/1/epochs.csv")
    assert [(m.step, m.value) for m in history] == list(zip(epochs["iteration"], epochs["value"], strict=True))
    assert {a.path for a in client.list_artifacts(run.info.run_id)} >= {"assumption.parquet", "summary.json"}

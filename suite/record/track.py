"""Imports finished runs into MLflow: one experiment a profile, one run a training run, written by one process.

A run carries a fingerprint of its folder; importing again replaces what changed and leaves the rest, so doing it twice
changes nothing. Bulk series go in as artifacts, epochs as metrics by step with their recorded time.
"""

import hashlib
import json
import os
from pathlib import Path

import pandas as pd

from suite.errors import SuiteError
from suite.record.aggregate import FinishedRun, finished_runs

_CHUNK = 1000  # metrics a call: what a tracking server accepts
_ARTIFACTS = (
    "config.yaml", "environment.json", "epochs.csv", "iterations.parquet", "assumption.parquet", "timeline.json",
    "summary.json",
)  # fmt: skip


def track(results: Path) -> dict[str, int]:
    """Bring results/<profile>/mlflow.db up to date; returns how many runs were added, replaced and unchanged."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    try:
        client = MlflowClient(f"sqlite:///{results.resolve()}/mlflow.db")
        experiment = client.get_experiment_by_name(results.name)
        artifacts = (results / "mlartifacts").resolve().as_uri()
        number = (
            experiment.experiment_id
            if experiment
            else client.create_experiment(results.name, artifact_location=artifacts)
        )
        present = {run.data.tags.get("suite.run"): run for run in _all_runs(client, number)}
        counts = {"added": 0, "replaced": 0, "unchanged": 0}
        for run in finished_runs(results):
            old = present.get(run.cell.address)
            fingerprint = _fingerprint(run)
            if (
                old is not None
                and old.data.tags.get("suite.fingerprint") == fingerprint
                and old.info.status == "FINISHED"
            ):
                counts["unchanged"] += 1
                continue
            if old is not None:
                client.delete_run(old.info.run_id)
            _import(client, number, run, fingerprint)
            counts["added" if old is None else "replaced"] += 1
    except MlflowException as error:
        raise SuiteError(
            f"MLflow refused the import ({error.message}); delete {results}/mlflow.db to rebuild it"
        ) from error
    return counts


def _all_runs(client, number: str):
    token = None
    while True:
        page = client.search_runs([number], max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _fingerprint(run: FinishedRun) -> str:
    return hashlib.sha256(run.folder.summary.read_bytes() + run.folder.config.read_bytes()).hexdigest()[:16]


def _import(client, experiment: str, run: FinishedRun, fingerprint: str) -> None:
    from mlflow.entities import Metric, Param, RunTag

    epochs = pd.read_csv(run.folder.path / "epochs.csv")
    began = int((epochs["timestamp"].iloc[0] - epochs["seconds"].iloc[0]) * 1000)
    tags = {"suite.run": run.cell.address, "suite.fingerprint": fingerprint, "experiment": run.cell.experiment}
    created = client.create_run(experiment, start_time=began, run_name=run.cell.address, tags=tags)
    run_id = created.info.run_id
    metrics = [
        Metric(name, float(row[column]), int(row["timestamp"] * 1000), int(row["iteration"]))
        for row in epochs.to_dict("records")
        for name, column in ((row["metric"], "value"), ("test_loss",) * 2, ("train_loss",) * 2, ("bytes_sent",) * 2)
    ]
    end = int(epochs["timestamp"].iloc[-1] * 1000)
    if run.summary.get("hidden_share") is not None:
        metrics.append(Metric("hidden_share", run.summary["hidden_share"], end, 0))
    metrics += [Metric(f"median_{k}_s", v, end, 0) for k, v in run.summary["median_seconds"].items()]
    metrics += [
        Metric(name, float(run.summary[name]), end, 0) for name in ("final", "best", "skipped", "dropped", "seconds")
    ]
    for start in range(0, len(metrics), _CHUNK):
        client.log_batch(run_id, metrics=metrics[start : start + _CHUNK])
    environment = json.loads(run.folder.environment.read_text())
    client.log_batch(
        run_id,
        params=[Param(key, str(value)) for key, value in _flat(run.config)],
        tags=[RunTag(f"environment.{key}", str(value)) for key, value in _flat(environment)],
    )
    for name in _ARTIFACTS:
        path = run.folder.path / name
        if path.exists():
            client.log_artifact(run_id, str(path))
    client.set_tag(run_id, "parameters_sha256", run.summary["parameters_sha256"])
    client.set_terminated(run_id, end_time=end)


def _flat(values: dict, prefix: str = ""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

"""Imports finished runs into MLflow: one experiment a profile, one run a training run, written by one process.

A run carries a fingerprint of its folder; importing again replaces what changed and leaves the rest, so doing it twice
changes nothing, and an import that was broken off is taken up again. Bulk series go in as artifacts, epochs as metrics
by step with their recorded time. No training process knows of MLflow: where it cannot be reached nothing waits.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from suite.errors import SuiteError
from suite.record.aggregate import FinishedRun, finished_runs

_CHUNK, _PARAMS = 900, 100  # metrics and parameters a call: a server accepts 1000 of both together
_ARTIFACTS = (
    "config.yaml", "environment.json", "epochs.csv", "iterations.parquet", "assumption.parquet", "timeline.json",
    "summary.json",
)  # fmt: skip
# Without these a server that is not there costs minutes; whoever sets them knows better.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}


def track(results: Path, server: str | None = None) -> dict[str, int]:
    """Bring MLflow up to date; returns how many runs were added, replaced and unchanged.

    Args:
        results: folder of the profile.
        server: URI of a tracking server; None writes results/<profile>/mlflow.db, which a single import at a time
            holds: others wait for it.

    Raises:
        SuiteError: MLflow cannot be reached or refuses; run folders keep everything, so the import can be repeated.
    """
    for name, value in (_PATIENCE | {"MLFLOW_DISABLE_TELEMETRY": "true"}).items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    database = results / "mlflow.db"
    try:
        with _alone(results):
            client = MlflowClient(server or f"sqlite:///{database.resolve()}")
            artifacts = None if server else (results / "mlartifacts").resolve().as_uri()
            return _import_all(client, results, artifacts)
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = " ".join(str(getattr(error, "message", error)).split())
        fix = "try again when it is there" if server else f"delete {database} to rebuild it"
        raise SuiteError(
            f"MLflow at {server or database} did not take the import ({reason}); {fix}: the run folders hold everything"
        ) from error


@contextmanager
def _alone(results: Path) -> Iterator[None]:
    """One import at a time: two that make a database's tables together would break it."""
    with open(results / ".mlflow.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _import_all(client, results: Path, artifacts: str | None) -> dict[str, int]:
    experiment = client.get_experiment_by_name(results.name)
    number = (
        experiment.experiment_id if experiment else client.create_experiment(results.name, artifact_location=artifacts)
    )
    present = {run.data.tags.get("suite.run"): run for run in _all_runs(client, number)}
    counts = {"added": 0, "replaced": 0, "unchanged": 0}
    for run in finished_runs(results):
        old = present.get(run.cell.address)
        fingerprint = _fingerprint(run)
        if old is not None and old.data.tags.get("suite.fingerprint") == fingerprint and old.info.status == "FINISHED":
            counts["unchanged"] += 1
            continue
        if old is not None:
            client.delete_run(old.info.run_id)
        _import(client, number, run, fingerprint)
        counts["added" if old is None else "replaced"] += 1
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
    from mlflow.entities import Metric, Param

    epochs = pd.read_csv(run.folder.path / "epochs.csv")
    began = int((epochs["timestamp"].iloc[0] - epochs["seconds"].iloc[0]) * 1000)
    environment = json.loads(run.folder.environment.read_text())
    tags = {
        "suite.run": run.cell.address, "suite.fingerprint": fingerprint, "experiment": run.cell.experiment,
        "parameters_sha256": run.summary["parameters_sha256"],
        **{f"environment.{key}": str(value) for key, value in _flat(environment)},
    }  # fmt: skip
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
    params = [Param(key, str(value)) for key, value in _flat(run.config)]
    # One call, which is one transaction, where everything fits.
    for i in range(max(-(-len(metrics) // _CHUNK), -(-len(params) // _PARAMS))):
        client.log_batch(
            run_id, metrics[i * _CHUNK : (i + 1) * _CHUNK], params[i * _PARAMS : (i + 1) * _PARAMS], synchronous=True
        )
    for name in _ARTIFACTS:
        path = run.folder.path / name
        if path.exists():
            client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, end_time=end)


def _flat(values: dict, prefix: str = ""):
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

"""Plausible results of a profile without training: comparisons, a density sweep, an ablation, runs on ranks, timings.

`write_results(folder)` writes tables/*.csv, claims.json and the environment.json of every run; numbers follow simple
curves plus seeded noise, so two calls write the same bytes. The runs are in synthetic_runs.py, iteration
times in synthetic_times.py.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd

import synthetic_times
from suite.record.delta import delta_by_kind
from synthetic_claims import claims
from synthetic_runs import EPOCHS, ITERATIONS, LABELS, MORE, WORKERS, Run, profile_runs

PHASES = {  # seconds: compute, select, exchange, apply, measure, other
    "dense": (0.052, 0.0, 0.021, 0.002, 0.0, 0.001),
    "slgs": (0.052, 0.014, 0.006, 0.002, 0.011, 0.001),
    "lags": (0.052, 0.019, 0.008, 0.003, 0.013, 0.001),
}


def tables(runs: list[Run]) -> dict[str, pd.DataFrame]:
    """The tidy tables of these runs, by file name without suffix."""
    epochs = pd.concat([_epochs(run) for run in runs], ignore_index=True)
    logging = [_assumption(run) for run in runs if run.logs_assumption] or [_assumption(runs[0]).head(0)]
    logged = pd.concat(logging, ignore_index=True)
    return {
        "runs": pd.DataFrame([_run_row(run, epochs) for run in runs]),
        "epochs": epochs[epochs.scored].drop(columns=["method_key", "scored"]),
        "losses": pd.concat([_losses(run) for run in runs]),
        "run_times": pd.DataFrame(
            [row for run in runs for row in _run_times(run)], columns=_RUN_TIMES
        ).drop_duplicates(),
        "delta_by_kind": pd.concat(
            [
                delta_by_kind(rows).assign(**(run.keys if run else runs[0].keys))
                for run, rows in ([(run, _assumption(run)) for run in runs if run.logs_assumption] or [(None, logged)])
            ]
        ),
        "assumption_iterations": logged.drop(columns="epoch"),
        "assumption": _by_epoch(logged),
        "phases": pd.DataFrame(
            [
                {
                    "experiment": run.experiment,
                    "method": run.method,
                    "label": (LABELS | MORE)[run.method_name],
                    "seed": run.seed,
                    "workers": WORKERS,
                    "processes": run.processes,
                    "transport": run.transport,
                    "phase": phase,
                    "median_s": seconds * (1 if run.processes > 1 else 3.1),
                }
                for run in runs
                for phase, seconds in zip(
                    ("compute", "select", "exchange", "apply", "measure", "other"),
                    PHASES.get(run.method_name, PHASES["slgs"]),
                    strict=True,
                )
            ]
        ),
        "timeline": pd.concat([_timeline(run) for run in runs if run.processes > 1] or [_timeline(runs[0]).head(0)]),
    }


def write_results(folder: Path, runs: list[Run] | None = None, emulated: bool = True) -> Path:
    """Write a profile's folder below `folder` and return it: tables, claims and environments, no figures."""
    runs = profile_runs() if runs is None else runs
    results = folder / "laptop"
    (results / "tables").mkdir(parents=True)
    for name, table in (tables(runs) | synthetic_times.tables(emulated)).items():
        table.to_csv(results / "tables" / f"{name}.csv", index=False)
    ids = [run.run_id for run in runs if run.experiment == "digits"]
    (results / "claims.json").write_text(json.dumps(claims(ids), indent=1))
    for run in runs:
        place = results / "runs" / run.address.partition("/")[2]
        place.mkdir(parents=True)
        (place / "environment.json").write_text(json.dumps(_environment(run)))
    return results


_RUN_TIMES = ["experiment", "method", "network", "workers", "iteration_s", "compute_s", "evidence", "source"]


def _losses(run: Run) -> pd.DataFrame:
    """A loss that falls, faster once the rate has fallen by half-time."""
    iteration = np.arange(1, ITERATIONS + 1)
    late = iteration > ITERATIONS // 2
    loss = 2.3 * np.exp(-iteration / 60) * np.where(late, 0.8, 1) + run.rng.normal(0, 0.02, ITERATIONS)
    epoch = (iteration - 1) // (ITERATIONS // EPOCHS) + 1
    frame = pd.DataFrame({"iteration": iteration, "epoch": epoch, "lr": np.where(late, 0.01, 0.1), "loss": loss})
    return frame.assign(**run.keys) if run.scored else frame.assign(**run.keys).head(0)


def _run_times(run: Run) -> list[tuple]:
    """Seconds of an iteration on two networks: that of the compute phases and of the bytes."""
    if run.experiment not in ("digits", "pydoc", "ratio", "field"):
        return []
    if run.method_name == "gtopk":
        reason = "trees are not timed here"
        return [("field", run.method, name, WORKERS, np.nan, np.nan, "refused", reason) for name in ("1gbe", "10gbe")]
    return [
        (
            run.experiment,
            run.method,
            network,
            WORKERS,
            0.05 + 8e-9 * run.step_bytes / gigabits,
            0.05,
            "predicted",
            "A device.",
        )
        for network, gigabits in (("1gbe", 1.0), ("10gbe", 10.0))
    ]


def _timeline(run: Run) -> pd.DataFrame:
    """Two ranks that compute 20 + 32 ms; LAGS sends four messages meanwhile, as predicted, others one later."""
    computes = [("forward", "", 0, 20), ("backward", "", 20, 52)]
    layers = [("exchange", f"layer{i}", 36 + 4 * i, 40 + 4 * i) for i in range(4)]
    layers += [("select", f"layer{i}", 35 + 4 * i, 36 + 4 * i) for i in range(4)]
    whole = [("select", "gradient", 52, 60), ("exchange", "gradient", 60, 80), ("apply", "step", 80, 82)]
    events = [
        {"kind": kind, "rank": rank, "phase": phase, "event": event, "start": start / 1e3, "end": end / 1e3}
        for kind, rank in (("traced", 0), ("traced", 1), *([("predicted", np.nan)] * (run.method_name == "lags")))
        for phase, event, start, end in (*computes, *(layers if run.method_name == "lags" else whole))
    ]
    return pd.DataFrame(events).assign(**run.keys)


def _epochs(run: Run) -> pd.DataFrame:
    rng, epoch = run.rng, np.arange(1, EPOCHS + 1)
    # Sparser is slower, without the residual much slower; noise shrinks as training settles.
    share = 1.0 if np.isnan(run.density) else run.density
    rate = (0.36 - 0.035 * np.log10(1 / share) * (1.3 if run.method_name == "lags" else 1)) * (
        1 if run.error_feedback else 0.35
    )
    fall = np.exp(-rate * epoch) * np.exp(rng.normal(0, 0.06, EPOCHS))
    if run.text:
        loss, value, metric = 4.3 + 2.9 * fall, np.exp(4.6 + 2.4 * fall), "test_perplexity"
    else:
        loss, value, metric = 0.01 + 2.2 * fall, np.clip(0.985 - 0.85 * fall, 0.1, 1), "test_accuracy"
    if run.experiment == "rate":
        value, metric = fall / run.length**0.5, "gradient_norm_squared"
    steps = epoch * (run.length // EPOCHS)
    return pd.DataFrame(
        {
            **run.keys,
            "epoch": epoch,
            "iteration": steps,
            "train_loss": loss,
            "test_loss": loss * 1.1,
            "metric": metric,
            "value": value,
            "lr": 0.1,
            "bytes_sent": steps * run.step_bytes,
            "seconds": steps * 0.25,
            "rounds": steps * run.rounds,
            "batches": steps,
            "method_key": run.address,
            "scored": run.scored,
        }
    )


def _run_row(run: Run, epochs: pd.DataFrame) -> dict:
    own = epochs[epochs.method_key == run.address]
    better = own.value.min() if run.text else own.value.max()
    return {
        "run": run.address,
        "run_id": run.run_id,
        **run.keys,
        "task": f"{'text' if run.text else run.experiment == 'rate'}-{run.scored}-{run.precision}-{run.length}",
        "model": "lstm" if run.text else "resnet20",
        "dataset": "pydoc" if run.text else "digits" if run.scored else "synthetic",
        "workers": WORKERS,
        "processes": run.processes,
        "transport": run.transport,
        "error_feedback": run.error_feedback,
        "lr_placement": run.lr_placement,
        "adaptive": run.adaptive,
        "ratio_cap": 1 / run.density,
        "precision": run.precision,
        "channels_last": False,
        "metric": own.metric.iloc[0],
        "hidden_share": np.nan if run.processes == 1 else 0.9 if run.method_name == "lags" else 0.0,
        "final": own.value.iloc[-1] if run.scored else np.nan,
        "best": better if run.scored else np.nan,
        "train_loss": own.train_loss.iloc[-1] if run.scored else np.nan,
        "iterations": run.length,
        "epochs": EPOCHS,
        "seconds": round(ITERATIONS * (0.2 + sum(PHASES.get(run.method_name, PHASES["slgs"]))) + 3 * run.seed, 2),
        "bytes_sent": ITERATIONS * run.step_bytes,
        "parameters": run.size,
        "lr": 0.1,
        "rounds": run.length * run.rounds,
        "own_bytes": run.own_bytes,
        "own_parts": {"dense": "", "local_sgda": "parameters"}.get(run.method_name, "residual"),
        "collective": "binomial tree" if run.method_name == "gtopk" else "all-gather",
        "all_reduce": run.method_name in ("dense", "local_sgda"),
        "segments": len(run.segments),
        "skipped": 0,
        "dropped": 13,
        "parameters_sha256": hashlib.sha256(run.run_id.encode()).hexdigest(),
    }


def _assumption(run: Run) -> pd.DataFrame:
    rng, iteration = run.rng, np.arange(1, ITERATIONS + 1)
    segments = {"gradient": run.size} if run.method_name == "slgs" else run.segments
    parts = []
    for position, (segment, size) in enumerate(segments.items()):
        k = max(int(run.density * size), 1)
        level = 0.99 - 0.045 * np.exp(-position / 15) - 0.02 * np.exp(-iteration / 40)
        # Few entries scatter more; that is where values above 1 come from.
        delta = level + rng.normal(0, 0.25 / np.sqrt(size + 30), ITERATIONS)
        parts.append(
            pd.DataFrame(
                {
                    "experiment": run.experiment,
                    "method": run.method,
                    "label": (LABELS | MORE)[run.method_name],
                    "seed": run.seed,
                    "iteration": iteration,
                    "segment": segment,
                    "position": position,
                    "d": size,
                    "k": k,
                    "delta": delta,
                    "delta_random": delta + rng.normal(0, 0.02, ITERATIONS),
                    "norm_ratio": 0.25 + 0.2 * np.exp(-iteration / 50) + rng.normal(0, 0.03, ITERATIONS),
                    "epoch": (iteration - 1) // (ITERATIONS // EPOCHS) + 1,
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    # A segment whose mean gradient is exactly zero has no value.
    without = (table.segment == "conv1.weight") & (table.iteration < 4)
    table.loc[without, ["delta", "delta_random", "norm_ratio"]] = np.nan
    return table


def _by_epoch(logged: pd.DataFrame) -> pd.DataFrame:
    keys = ["experiment", "method", "label", "seed", "epoch", "segment", "position", "d", "k"]
    groups = logged.assign(above=logged.delta > 1).groupby(keys, sort=False)
    return groups.agg(
        points=("delta", "count"),
        delta_mean=("delta", "mean"),
        delta_max=("delta", "max"),
        above_one=("above", "sum"),
        norm_ratio_mean=("norm_ratio", "mean"),
    ).reset_index()


def _environment(run: Run) -> dict:
    return {
        "versions": {"python": "3.11.2", "torch": "2.14.1", "horovod": "0.28.1"},
        "commit": "0123456789abcdef0123",
        "host": "laptop",
        "cpu": "Example CPU @ 2.4 GHz",
        "cores": 2,
        "platform": "Linux-6.1-x86_64",
        "transport": run.transport,
        "threads": 1,
        "date": "2026-01-31T12:00:00+00:00",
    }

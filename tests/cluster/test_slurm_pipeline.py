"""The smoke profile through Slurm, as on a cluster: 4-rank jobs, the executor's status queries, a notice in mid-run."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from helpers import copy_pipeline

SITE = """
slurm:
  {partition: gpu, nodes: 4, tasks_per_node: 1, cpus_per_node: 4, gpus_per_node: 4, memory_per_task: 500, minutes: 10}
"""

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.pipeline]


def snakemake(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", *arguments]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of the pipeline's files whose site is the private Slurm."""
    folder = copy_pipeline(tmp_path_factory.mktemp("checkout"), "cluster")
    (folder / "cluster" / "slurm" / "site.yaml").write_text(SITE)
    return folder


def jobs_of(slurm, what: str) -> list[str]:
    """Numbers of running jobs whose comment names a cell."""
    listing = slurm.run("squeue", "--noheader", "--states=RUNNING", "--format=%i %k").stdout
    return [line.split()[0] for line in listing.splitlines() if what in line]


def test_the_smoke_profile_through_slurm(slurm, checkout):
    command = snakemake("--profile", "cluster/slurm", "--config", "profile=smoke")
    # Jobs here take seconds: ask sooner than of a cluster.
    command += ["--slurm-init-seconds-before-status-checks", "2", "--latency-wait", "10", "--jobs", "4"]
    with open(checkout / "pipeline.log", "w") as log:
        pipeline = subprocess.Popen(
            slurm.inside("timeout", "--kill-after=10", "900", *command, cwd=checkout), stdout=log, stderr=log
        )
        # What Slurm does ahead of a limit: a notice to a job's steps. One run of one rank, one of four.
        waiting = {"digits/lags/0": "digits_lags_0", "ranks/lags/0": "ranks_lags_0"}
        while pipeline.poll() is None:
            for cell, comment in list(waiting.items()):
                if list(checkout.glob(f"results/smoke/runs/{cell}/checkpoint/step-*")):
                    for job in jobs_of(slurm, comment):
                        slurm.run("scancel", "--signal=TERM", job)
                    del waiting[cell]
            time.sleep(0.05)
    output = (checkout / "pipeline.log").read_text()
    assert pipeline.returncode == 0, output[-3000:]
    results = checkout / "results" / "smoke"
    for name in ("report.html", "mlflow.db", "claims.json", "figures/captions.json"):
        assert (results / name).exists(), name
    runs = pd.read_csv(results / "tables" / "runs.csv")
    assert len(runs) == 8 and (runs["processes"] == 4).any()
    environment = json.loads((results / "runs" / "ranks" / "lags" / "0" / "environment.json").read_text())
    assert [rank["node"] for rank in environment["ranks"]] == ["n1", "n2", "n3", "n4"]
    noticed = json.loads((results / "runs" / "digits" / "lags" / "0" / "summary.json").read_text())["resumed_at"]
    assert noticed and "Trying to restart" in output
    assert not slurm.run("squeue", "--noheader").stdout.strip()


def test_the_fallback_gives_the_same_bits(slurm, checkout):
    cells = ["digits/slgs/0", "ranks/lags/0"]
    summaries = [checkout / "results" / "smoke" / "runs" / cell / "summary.json" for cell in cells]
    before = [json.loads(path.read_text())["parameters_sha256"] for path in summaries if path.exists()]
    for path in summaries:
        shutil.rmtree(path.parent, ignore_errors=True)
    command = snakemake("--profile", "cluster/slurm/generic", "--config", "profile=smoke")
    command += ["--seconds-between-status-checks", "1", "--latency-wait", "10", "--"]
    command += [str(path.relative_to(checkout)) for path in summaries]
    run = slurm.run("timeout", "--kill-after=10", "600", *command, cwd=checkout)
    assert run.returncode == 0, run.stderr[-3000:]
    after = [json.loads(path.read_text())["parameters_sha256"] for path in summaries]
    assert before in ([], after)


def test_what_cannot_fit_is_refused_at_dry_run(checkout):
    """No Slurm needed: it is refused before anything is asked of it."""
    command = snakemake("-n", "--cores", "1", "--configfile", "cluster/slurm/site.yaml", "--config", "profile=smoke")
    site = checkout / "cluster" / "slurm" / "site.yaml"
    site.write_text(SITE.replace("nodes: 4, tasks", "nodes: 2, tasks"))
    try:
        run = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=120)
    finally:
        site.write_text(SITE)
    said = run.stdout + run.stderr
    assert run.returncode != 0 and "smoke/ranks/lags/0 has 4 ranks, which take 4 nodes at 1 a node" in said

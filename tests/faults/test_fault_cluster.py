"""What happens to a cluster while a job trains on it."""

import os
import sys

import pytest
import yaml
from fault_runs import LENGTH
from fault_table import fault

from slurm_jobs import SCRIPT, finished, ranks_of, state, wait_for


@fault("a node is drained and goes down under a job of 4 ranks on 2 nodes (private Slurm)",
       "all ranks are ended, the job queues again by itself and finishes on other nodes")  # fmt: skip
@pytest.mark.slurm
def test_a_node_goes_down(slurm, attempt, row, undisturbed, tmp_path):
    run = attempt(world={"processes": 4})
    sent = slurm.run(
        "sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=2", "--time=60", "--output=job-%j.log",
        SCRIPT, run.config, "--out", run.out,
        cwd=tmp_path, env=os.environ | {"PYTHON": sys.executable},
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    job = sent.stdout.strip()
    wait_for(lambda: list(run.out.glob("checkpoint/step-*")), 240, "a checkpoint")
    ranks = ranks_of(run.out)
    # Held, so that the run cannot end before its node does.
    for rank in ranks:
        rank.suspend()
    down = ranks[0].environ()["SLURMD_NODENAME"]
    # Drained too, since its daemon lives on and would bring it back into service.
    for what in ("DRAIN", "DOWN"):
        slurm.run("scontrol", "update", f"NodeName={down}", f"State={what}", "Reason=test", check=True)
    try:
        with row.timed():
            wait_for(lambda: not any(rank.is_running() for rank in ranks), 60, "the end of the ranks")
        wait_for(lambda: state(slurm, job) == "PENDING", 60, "the queue")
        log = finished(slurm, job, tmp_path, 300)
    finally:
        slurm.run("scontrol", "update", f"NodeName={down}", "State=RESUME")
    assert state(slurm, job) == "COMPLETED", log
    environment = yaml.safe_load((run.out / "environment.json").read_text())
    nodes = {rank["node"] for rank in environment["ranks"]}
    assert len(nodes) == 2 and down not in nodes
    summary = yaml.safe_load((run.out / "summary.json").read_text())
    assert summary["parameters_sha256"] == undisturbed["parameters_sha256"]
    (resumed,) = summary["resumed_at"]
    row.seen = f"the job went on on {' and '.join(sorted(nodes))}, its first node being down"
    row.lost = f"nothing (continued from iteration {resumed} of {LENGTH})"

"""Ranks started inside of Slurm jobs: the same bits as elsewhere, and ends that leave nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from helpers import ROOT, require
from slurm_jobs import SCRIPT, SUITE, finished, ranks_of, state, submit, wait_for, write
from suite.world.check import horovod_build
from training import summary_of

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def need_horovod() -> None:
    build = horovod_build()
    require("horovod", "gloo" in build.controllers, f"Horovod with Gloo is not here ({build.reason})")


def need_mpi() -> None:
    build = horovod_build()
    require("mpi", "mpi" in build.controllers, f"Horovod with MPI is not here ({build.reason or 'not built in'})")


def test_sixteen_tasks_over_four_nodes_give_the_virtual_worlds_bits(slurm, suite_command, tmp_path):
    need_horovod()
    config = write(tmp_path, world={"workers": 16}, train={"epochs": 1, "max_iterations": 4})
    cases = {"slgs": "torch", "lags": "horovod"}
    lines = [
        f"{' '.join(SUITE)} train {config} --out {tmp_path}/{method} --set method.name={method} "
        f"--set world.processes=16 --set world.transport={transport} || exit 1"
        for method, transport in cases.items()
    ]
    job = submit(slurm, tmp_path, "--nodes=4", "--ntasks-per-node=4", script="\n".join(lines))
    for method in cases:
        reference = tmp_path / f"virtual-{method}"
        assert suite_command("train", config, "--out", reference, "--set", f"method.name={method}").returncode == 0
    log = finished(slurm, job, tmp_path, 600)
    assert state(slurm, job) == "COMPLETED", log
    for method in cases:
        ours, theirs = summary_of(tmp_path / method), summary_of(tmp_path / f"virtual-{method}")
        assert ours["parameters_sha256"] == theirs["parameters_sha256"], method
        environment = yaml.safe_load((tmp_path / method / "environment.json").read_text())
        assert [rank["node"] for rank in environment["ranks"]] == [f"n{1 + i // 4}" for i in range(16)]
        assert environment["slurm_job"] == job and environment["warnings"] == []


@pytest.mark.parametrize("transport", ["torch", "horovod"])
def test_a_killed_rank_ends_the_step_and_is_named(slurm, tmp_path, transport: str):
    if transport == "horovod":
        need_horovod()
    out = tmp_path / "run"
    world = {"workers": 4, "processes": 4, "transport": transport}
    config = write(tmp_path, world=world, train={"epochs": 400, "checkpoint_every": 10})
    command = f"{' '.join(SUITE)} train {config} --out {out}"
    job = submit(slurm, tmp_path, "--nodes=2", "--ntasks-per-node=2", script=command)
    wait_for(lambda: list(out.glob("checkpoint/step-*")), 240, "a checkpoint")
    ranks = {process.environ()["SUITE_RANK"]: process for process in ranks_of(out)}
    assert sorted(ranks) == ["0", "1", "2", "3"]
    began = time.monotonic()
    ranks["2"].send_signal(signal.SIGKILL)
    log = finished(slurm, job, tmp_path, 60)
    assert time.monotonic() - began < 60 and state(slurm, job) == "FAILED"
    assert "rank 2 on n2 was ended (Killed) and all ranks were ended" in log
    assert not ranks_of(out) and not (out / "summary.json").exists() and list(out.glob("checkpoint/step-*"))


def test_the_first_traceback_is_shown(slurm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\nfrom pathlib import Path\nfrom suite.config.experiment import WorldConfig\n"
        "from suite.world.launch import launch\n"
        "if 'SUITE_RANK' not in os.environ:\n"
        "    launch(WorldConfig(workers=4, processes=4, transport='torch'), [sys.executable, __file__], Path('logs'))\n"
        "if os.environ['SUITE_RANK'] == '3':\n"
        "    for part in 'half', ' a', ' line\\n':\n"
        "        sys.stderr.write(part)\n"
        "        time.sleep(0.5)\n"
        "    raise RuntimeError('the reason')\n"
        "time.sleep(600)\n"
    )
    job = submit(slurm, tmp_path, "--nodes=4", "--ntasks=4", script=f"{sys.executable} {program}")
    log = finished(slurm, job, tmp_path, 90)
    assert "rank 3 on n4 ended with exit code 1 and all ranks were ended" in log
    assert "half a line\n" in log and "RuntimeError: the reason" in log


def noticed(process: psutil.Process, number: int) -> bool:
    """Whether a held process has been sent a signal; Slurm may have let it go on, to its end, by the same step."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return True
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (number - 1) & 1 for mask in masks) or not lines[2].startswith("State:\tT")


def limit(slurm, job: str, minutes: int) -> None:
    told = slurm.run("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}")
    assert told.returncode == 0, told.stderr


def test_a_time_limit_after_half_of_the_run_costs_nothing(slurm, suite_command, tmp_path):
    """Slurm's own notice and its own requeueing.

    So that it is half of the run on any machine, the ranks are held there, and the limit is lowered to where they are.
    """
    out, train = tmp_path / "run", {"epochs": 4, "max_iterations": 80, "checkpoint_every": 10}
    config = write(tmp_path, train=train)
    world = ["--set", "world={workers: 4, processes: 4, transport: torch}"]
    options = ["--nodes=2", "--ntasks-per-node=2", "--time=60", "--signal=TERM@30", "--output=job-%j.log"]
    began = time.monotonic()
    sent = slurm.run(
        "sbatch", "--parsable", *options, SCRIPT, config, "--out", out, *world,
        cwd=tmp_path, env=os.environ | {"PYTHON": sys.executable},
    )  # fmt: skip
    assert sent.returncode == 0, sent.stderr
    job = sent.stdout.strip()
    wait_for(lambda: list(out.glob("checkpoint/step-00000000[4-7]0")), 300, "half of the run")
    ranks = ranks_of(out)
    for rank in ranks:
        rank.suspend()
    assert len(ranks) == 4
    wait_for(lambda: all(rank.status() == psutil.STATUS_STOPPED for rank in ranks), 10, "the hold")
    limit(slurm, job, minutes=int((time.monotonic() - began) / 60) + 2)
    wait_for(lambda: all(noticed(rank, signal.SIGTERM) for rank in ranks), 120, "Slurm's notice")
    for rank in ranks:
        with contextlib.suppress(psutil.NoSuchProcess):
            rank.resume()
    wait_for(lambda: state(slurm, job) == "PENDING", 90, "the requeueing")
    assert not (out / "summary.json").exists()
    limit(slurm, job, minutes=60)
    log = finished(slurm, job, tmp_path, 300)
    summary = summary_of(out)
    (resumed,) = summary["resumed_at"]
    assert 40 <= resumed < 80 and f"stopped by signal at iteration {resumed} of 80" in log
    assert suite_command("train", config, "--out", tmp_path / "straight").returncode == 0
    assert summary["parameters_sha256"] == summary_of(tmp_path / "straight")["parameters_sha256"]


def test_what_does_not_fit_the_job_is_refused(slurm, tmp_path):
    world = {"workers": 16, "processes": 8, "transport": "torch"}
    config = write(tmp_path, world=world)
    few = slurm.run("salloc", "-Q", "--ntasks=4", *SUITE, "train", config, cwd=tmp_path)
    assert few.returncode == 2 and "world.processes is 8 and Slurm job" in few.stderr and "--ntasks=8" in few.stderr
    narrow = slurm.run("salloc", "-Q", "--ntasks=8", *SUITE, "train", config, "--set", "world.threads=2", cwd=tmp_path)
    assert narrow.returncode == 2 and "--cpus-per-task=2" in narrow.stderr


def test_a_job_of_one_task_shares_its_cores(slurm, tmp_path):
    """As on any machine: no step is made, so that Snakemake's own step is not waited for."""
    config = write(tmp_path, world={"workers": 4, "processes": 2, "transport": "torch"}, train={"max_iterations": 3})
    run = slurm.run("srun", "--ntasks=1", *SUITE, "train", config, "--out", tmp_path / "run", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    environment = yaml.safe_load((tmp_path / "run" / "environment.json").read_text())
    assert len({rank["node"] for rank in environment["ranks"]}) == 1 and len(environment["ranks"]) == 2


def test_mpi_ranks_are_started_by_pmix(slurm, suite_command, tmp_path):
    need_mpi()
    config = write(tmp_path, train={"epochs": 1, "max_iterations": 4})
    world = "world={workers: 4, processes: 4, transport: horovod, controller: mpi}"
    # Loopback is all the network there is, which Open MPI would not use between hosts.
    loopback = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
    run = slurm.run(
        "salloc", "-Q", "--nodes=2", "--ntasks-per-node=2", *SUITE, "train", config, "--out", tmp_path / "mpi",
        "--set", world, cwd=tmp_path, env=os.environ | loopback,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    environment = yaml.safe_load((tmp_path / "mpi" / "environment.json").read_text())
    assert [rank["node"] for rank in environment["ranks"]] == ["n1", "n1", "n2", "n2"]
    assert suite_command("train", config, "--out", tmp_path / "virtual").returncode == 0
    sides = [summary_of(tmp_path / name)["parameters_sha256"] for name in ("mpi", "virtual")]
    assert sides[0] == sides[1]


def test_mpi_is_refused_where_slurm_cannot_start_it(slurm, suite_command, tmp_path):
    need_mpi()
    without = tmp_path / "bin"
    without.mkdir()
    real = slurm.run("which", "srun").stdout.strip()
    (without / "srun").write_text(f'#!/bin/sh\n[ "$1" = --mpi=list ] && exec echo none\nexec {real} "$@"\n')
    (without / "srun").chmod(0o755)
    config = write(tmp_path, world={"workers": 2, "processes": 2, "transport": "horovod", "controller": "mpi"})
    path = {"PATH": f"{without}:{os.environ['PATH']}"}
    run = slurm.run("salloc", "-Q", "--ntasks=2", *SUITE, "train", config, cwd=tmp_path, env=os.environ | path)
    assert run.returncode == 2 and "neither by PMIx nor by PMI2" in run.stderr


def test_doctor_looks_at_every_node(slurm, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("slurm: {partition: gpu, nodes: 4, tasks_per_node: 4, cpus_per_node: 4, gpus_per_node: 0}\n")
    looked = slurm.run(*SUITE, "doctor", "--slurm", "--site", site, "--patience", "120", cwd=tmp_path)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    for node, peer in (("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n4", "n1")):
        row = next(line for line in looked.stdout.splitlines() if line.startswith(f"│ {node} "))
        assert f"│ {peer} " in row and "seen" in row and "Gb/s" in row, looked.stdout
    site.write_text(site.read_text().replace("gpus_per_node: 0", "gpus_per_node: 4"))
    without = slurm.run(*SUITE, "doctor", "--slurm", "--site", site, "--patience", "120", cwd=tmp_path)
    assert without.returncode == 1 and "n3 has 0 usable GPUs and slurm.gpus_per_node is 4" in without.stdout


def test_nothing_outlives_the_process_that_started_a_slurm(slurm, tmp_path):
    """kill -9, with a job running on all nodes."""
    command = [sys.executable, ROOT / "cluster" / "slurm" / "private_slurm.py", "--", "srun", "-N4", "sleep", "7531"]
    output = tmp_path / "output.log"
    with open(output, "wb") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=log, stderr=log
        )

    def children() -> list[psutil.Process]:
        return [p for p in psutil.Process(process.pid).children(recursive=True) if p.is_running()]

    def sleeping() -> int:
        return sum((p.info["cmdline"] or [])[1:] == ["7531"] for p in psutil.process_iter(["cmdline"]))

    try:
        wait_for(lambda: sleeping() == 4 or process.poll() is not None, 240, "the job")
        assert process.poll() is None, output.read_text()
        started = children()
        assert {"slurmctld", "slurmd", "munged"} <= {p.name() for p in started}
    finally:
        process.kill()
        process.wait()
    wait_for(lambda: not any(p.is_running() for p in started) and not sleeping(), 10, "the end of all daemons")

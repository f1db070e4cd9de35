"""Jobs of a private Slurm, for the tests that submit some."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import yaml

from helpers import ROOT, tiny_settings

SCRIPT = ROOT / "cluster" / "slurm" / "train.sbatch"
SUITE = [sys.executable, "-m", "suite"]


def write(folder: Path, **sections: dict) -> Path:
    """The tiny configuration as a file, with settings of its sections replaced."""
    values = tiny_settings()
    for name, section in sections.items():
        values[name] = section if "name" in section else values[name] | section
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def submit(slurm, folder: Path, *options: str, script: str) -> str:
    """Submit a batch script and return the job's number."""
    path = folder / f"job-{len(list(folder.glob('job-*.sh')))}.sh"
    path.write_text(f"#!/bin/bash\n{script}\n")
    sent = slurm.run("sbatch", "--parsable", "--output=job-%j.log", *options, path, cwd=folder)
    assert sent.returncode == 0, sent.stderr
    return sent.stdout.strip()


def state(slurm, job: str, pause: float = 0.0) -> str:
    time.sleep(pause)
    told = slurm.run("scontrol", "--oneliner", "show", "job", job).stdout
    return next(word.partition("=")[2] for word in told.split() if word.startswith("JobState="))


def wait_for(what: Callable[[], object], seconds: float, name: str) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"{name} did not come within {seconds:.0f} s"
        time.sleep(0.05)


def finished(slurm, job: str, folder: Path, seconds: float = 240) -> str:
    """Wait for a job's end; its log."""
    wait_for(
        lambda: state(slurm, job, pause=0.5) not in ("PENDING", "RUNNING", "COMPLETING"),
        seconds,
        f"the end of job {job}",
    )
    return (folder / f"job-{job}.log").read_text()


def ranks_of(out: Path) -> list[psutil.Process]:
    """Living ranks of a run, whatever node they are on."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if line[1:4] == ["-m", "suite", "rank"] and line[-1] == str(out):
            found.append(process)
    return found

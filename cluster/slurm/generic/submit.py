#!/usr/bin/env python3
"""Submits a job script of Snakemake with plain sbatch: `submit.py SCRIPT` prints the job's number.

The script's second line holds the job's resources, among them those of cluster/slurm/site.yaml.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

_OPTIONS = {
    "slurm_partition": "--partition", "slurm_account": "--account", "runtime": "--time", "mem_mb": "--mem",
    "cpus_per_task": "--cpus-per-task", "nodes": "--nodes", "gres": "--gres",
}  # fmt: skip
_LOGS = Path("results/slurm-logs")


def command(script: Path, properties: dict) -> list[str]:
    """The call of sbatch for a job script."""
    wanted = properties["resources"]
    options = [f"{option}={wanted[name]}" for name, option in _OPTIONS.items() if name in wanted]
    options += [f"--ntasks={wanted.get('tasks', 1)}", *shlex.split(wanted.get("slurm_extra", ""))]
    options += [f"--job-name=suite-{properties['rule']}", f"--output={_LOGS}/{properties['rule']}-%j.log"]
    # Slurm's notice ahead of the limit reaches steps only, and the shells on the way there would die of it.
    step = "" if "mpi" in wanted else f"srun --ntasks=1 --cpus-per-task={wanted.get('cpus_per_task', 1)} "
    return ["sbatch", "--parsable", *options, f"--wrap=trap '' TERM; {step}sh {shlex.quote(str(script.resolve()))}"]


def main() -> int:
    """Submit the script named on the command line."""
    script = Path(sys.argv[1])
    line = next(line for line in script.read_text().splitlines() if line.startswith("# properties = "))
    _LOGS.mkdir(parents=True, exist_ok=True)
    return subprocess.run(command(script, json.loads(line.removeprefix("# properties = ")))).returncode


if __name__ == "__main__":
    sys.exit(main())

# The pipeline's front door: every cell of a profile is trained, iteration times are predicted and emulated, then come
# tables, MLflow, figures, claims and the report.
#
#   snakemake --cores 2                           the laptop profile
#   snakemake --cores 2 --config profile=smoke    every rule once, tiny
#   snakemake --cores 2 --config profile=cifar-cpu data_root=DIR    on the data in DIR; see docs/data.md
#   snakemake --profile cluster/slurm --config profile=paper        on a Slurm cluster; see docs/slurm.md
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from suite.config import validate_config
from suite.config.profiles import profile_cells
from suite.config.site import site_from
from suite.emulate.check import why_not
from suite.emulate.grid import emulations
from suite.errors import SuiteError

PROFILE = config.get("profile", "laptop")
DATA_ROOT = str(config.get("data_root", ""))
RESULTS = f"results/{PROFILE}"

# Jobs run the Python that runs this file, also where its environment has not been activated.
shell.prefix(f'set -euo pipefail; export PATH="{Path(sys.executable).parent}:$PATH"; ')

try:
    CELLS = {cell.folder: cell for cell in profile_cells(PROFILE)}
    # A mistake in the last cell should not wait for the first one to be trained, and so with data that are missing.
    SETTINGS = {folder: validate_config(cell.config) for folder, cell in CELLS.items()}
    WANTED = {
        settings.data.name
        for folder, settings in SETTINGS.items()
        if getattr(settings.data, "on_disk", False) and not Path(f"{RESULTS}/runs/{folder}/summary.json").exists()
    }
    if WANTED or DATA_ROOT:
        from suite.data import find_data
        from suite.data.files import name_data_root

        if DATA_ROOT:
            name_data_root(Path(DATA_ROOT))  # also of jobs, which inherit the environment
        for name in sorted(WANTED):
            find_data(name)
    EMULATIONS = emulations(PROFILE)
    SITE = site_from(config)
    # What cannot fit is refused before anything is submitted. Without a site all runs on this machine.
    RESOURCES = {
        folder: SITE.resources(f"{PROFILE}/{folder}", settings.world) if SITE else {}
        for folder, settings in SETTINGS.items()
    }
    SLURM_RESOURCES = sorted({name for found in RESOURCES.values() for name in found})
except SuiteError as error:
    raise WorkflowError(str(error))


# On a cluster, what only reads and writes tables stays where Snakemake runs: submitting it would take longer.
localrules:
    all,
    aggregate,
    track,
    drift,
    times,
    figures,
    claims,
    report,


include: "rules/common.smk"
include: "rules/train.smk"
include: "rules/times.smk"
include: "rules/results.smk"


rule all:
    default_target: True
    input:
        report=f"{RESULTS}/report.html",
        tracked=f"{RESULTS}/.tracked",
        drift=rules.drift.output,


onerror:
    print(f"What has finished is reported by: snakemake --cores 1 --config profile={PROFILE} -- so_far")

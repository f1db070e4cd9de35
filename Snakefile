# The pipeline's front door: every cell of a profile is trained, iteration times are predicted and emulated, then come
# tables, MLflow, figures, claims and the report.
#
#   snakemake --cores 2                           the laptop profile
#   snakemake --cores 2 --config profile=smoke    every rule once, tiny
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from suite.config import validate_config
from suite.config.profiles import profile_cells
from suite.emulate.check import why_not
from suite.emulate.grid import emulations
from suite.errors import SuiteError

PROFILE = config.get("profile", "laptop")
RESULTS = f"results/{PROFILE}"

# Jobs run the Python that runs this file, also where its environment has not been activated.
shell.prefix(f'set -euo pipefail; export PATH="{Path(sys.executable).parent}:$PATH"; ')

try:
    CELLS = {cell.folder: cell for cell in profile_cells(PROFILE)}
    for cell in CELLS.values():
        validate_config(cell.config)  # a mistake in the last cell should not wait for the first one to be trained
    EMULATIONS = emulations(PROFILE)
except SuiteError as error:
    raise WorkflowError(str(error))


include: "rules/common.smk"
include: "rules/train.smk"
include: "rules/times.smk"
include: "rules/results.smk"


rule all:
    default_target: True
    input:
        report=f"{RESULTS}/report.html",
        tracked=f"{RESULTS}/.tracked",

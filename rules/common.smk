# What the rules ask of the grid and of the checkout.
import importlib.util
from pathlib import Path

HAS_HOROVOD = importlib.util.find_spec("horovod") is not None


def folder_of(wildcards):
    return f"{wildcards.experiment}/{wildcards.method}/{wildcards.seed}"


def cell_of(wildcards):
    return CELLS[folder_of(wildcards)]


def threads_of(wildcards):
    """Cores a run takes of this machine; a cluster is asked for each rank's, see `resource`."""
    world = SETTINGS[folder_of(wildcards)].world
    return world.threads if SITE else world.processes * world.threads


# What measures takes all cores, of this machine or of one of the cluster's nodes.
ALL_CORES = SITE.cpus_per_node if SITE else workflow.cores
NODE = SITE.node_resources() if SITE else {}


def resource(name):
    """A resource of Slurm jobs, as the site gives it to the cell; unset where it gives none."""
    return lambda wildcards: RESOURCES[folder_of(wildcards)].get(name)


def fallback_of(wildcards):
    """Without Horovod its cells run over torch.distributed; the run's environment.json and the report say so."""
    wants_horovod = cell_of(wildcards).config.get("world", {}).get("transport") == "horovod"
    return "--set world.transport=torch" if wants_horovod and not HAS_HOROVOD else ""


def emulated_here(wildcards):
    """What stands for the profile's own emulations: nothing where it lists none, or where this machine cannot."""
    return [EMULATED] if EMULATIONS and why_not(EMULATIONS) is None else []


def last_touched(folder):
    """Snakemake takes a touched file with unchanged content for unchanged; as a parameter its time counts."""
    return max(path.stat().st_mtime for path in Path(folder).rglob("*.py"))

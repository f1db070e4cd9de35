# What the rules ask of the grid and of the checkout.
import importlib.util
from pathlib import Path

HAS_HOROVOD = importlib.util.find_spec("horovod") is not None


def cell_of(wildcards):
    return CELLS[f"{wildcards.experiment}/{wildcards.method}/{wildcards.seed}"]


def ranks_of(wildcards):
    return cell_of(wildcards).config.get("world", {}).get("processes", 1)


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

# One rule trains every cell. Its settings, not its code, decide on a rerun; a checkpoint is not an output, because
# Snakemake would delete it before the rerun that should continue from it.
import importlib.util

HAS_HOROVOD = importlib.util.find_spec("horovod") is not None


def cell_of(wildcards):
    return CELLS[f"{wildcards.experiment}/{wildcards.method}/{wildcards.seed}"]


def ranks_of(wildcards):
    return cell_of(wildcards).config.get("world", {}).get("processes", 1)


def fallback_of(wildcards):
    """Without Horovod its cells run over torch.distributed; the run's environment.json and the report say so."""
    wants_horovod = cell_of(wildcards).config.get("world", {}).get("transport") == "horovod"
    return "--set world.transport=torch" if wants_horovod and not HAS_HOROVOD else ""


rule train:
    output:
        f"{RESULTS}/runs/{{experiment}}/{{method}}/{{seed}}/summary.json",
    log:
        f"{RESULTS}/logs/train/{{experiment}}-{{method}}-{{seed}}.log",
    wildcard_constraints:
        experiment=r"[^/]+",
        method=r"[^/]+",
        seed=r"\d+",
    params:
        address=lambda wildcards: cell_of(wildcards).address,
        folder=lambda wildcards, output: output[0].rpartition("/")[0],
        settings=lambda wildcards: cell_of(wildcards).config_hash,
        fallback=fallback_of,
    threads: ranks_of
    conda:
        "../environment.yml"
    shell:
        "python -m suite train {params.address} --out {params.folder} --restart-if-changed {params.fallback} > {log} 2>&1"

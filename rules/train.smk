# One rule trains every cell. Its settings, not its code, decide on a rerun; a checkpoint is not an output, because
# Snakemake would delete it before the rerun that should continue from it.
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
    threads: threads_of
    resources:
        **{name: resource(name) for name in SLURM_RESOURCES},
    conda:
        "../environment.yml"
    shell:
        # Without a shell in between, which would die of the signal that Slurm sends ahead of a time limit.
        "exec python -m suite train {params.address} --out {params.folder} --restart-if-changed {params.fallback} > {log} 2>&1"

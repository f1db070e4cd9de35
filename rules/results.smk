# Everything that is built from finished runs. Each rule is one process, so MLflow's database has a single writer.
from glob import glob


rule aggregate:
    input:
        expand(f"{RESULTS}/runs/{{cell}}/summary.json", cell=CELLS),
    output:
        expand(
            f"{RESULTS}/tables/{{table}}.csv",
            table=[
                "runs", "epochs", "losses", "phases", "timeline", "assumption", "delta_by_kind", "assumption_iterations",
                "states", "observations",
            ],
        ),
    log:
        f"{RESULTS}/logs/aggregate.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite aggregate {params.profile} > {log} 2>&1"


rule track:
    input:
        rules.aggregate.output,
    output:
        touch(f"{RESULTS}/.tracked"),
    log:
        f"{RESULTS}/logs/track.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite track {params.profile} > {log} 2>&1"


rule drift:
    input:
        rules.aggregate.output,
        kept=glob(f"results/reference/{PROFILE}/runs/*/*/*/summary.json"),
    output:
        f"{RESULTS}/tables/drift.csv",
    log:
        f"{RESULTS}/logs/drift.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite drift {params.profile} > {log} 2>&1"


rule figures:
    input:
        tables=rules.aggregate.output,
        times=rules.times.output,
        code=glob(f"{workflow.basedir}/plots/**/*.py", recursive=True) + glob(f"{workflow.basedir}/suite/timeline/*.py"),
    output:
        f"{RESULTS}/figures/captions.json",
    log:
        f"{RESULTS}/logs/figures.log",
    params:
        profile=PROFILE,
        touched=last_touched(f"{workflow.basedir}/plots"),
    conda:
        "../environment.yml"
    shell:
        "python -m plots --results results/{params.profile} > {log} 2>&1"


rule claims:
    input:
        tables=rules.aggregate.output,
        times=rules.times.output,
        claims=glob(f"{workflow.basedir}/replications/*/claims.yaml"),
    output:
        f"{RESULTS}/claims.json",
    log:
        f"{RESULTS}/logs/claims.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite claims {params.profile} > {log} 2>&1"


rule report:
    input:
        figures=rules.figures.output,
        claims=rules.claims.output,
        code=glob(f"{workflow.basedir}/suite/report/*.*"),
        published=glob(f"{workflow.basedir}/replications/*/published.yaml"),
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite report {params.profile} > {log} 2>&1"


# What is there, also where cells have failed: for after `snakemake --keep-going`. Not a part of `all`.
rule so_far:
    log:
        f"{RESULTS}/logs/so-far.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite so-far {params.profile} > {log} 2>&1"

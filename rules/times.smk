# Iteration times on a network of hosts: predicted always, emulated for the profiles that list emulations, where the
# machine allows it. What measures takes all cores, so that nothing runs beside it.
from glob import glob

from suite.speed.published import brings_times

EMULATED = f"{RESULTS}/emulated/.done"


# One job for all of a profile's emulations: they share this machine's cores and follow one another.
rule emulate:
    output:
        touch(EMULATED),
    log:
        f"{RESULTS}/logs/emulate.log",
    params:
        profile=PROFILE,
        settings=sorted(emulation.hash for emulation in EMULATIONS),
    threads: ALL_CORES
    resources:
        **NODE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite emulate --profile {params.profile} > {log} 2>&1"


# What our selection takes here, in copies of the gradient.
rule selection:
    output:
        f"{RESULTS}/tables/selection.json",
    log:
        f"{RESULTS}/logs/selection.log",
    threads: ALL_CORES
    resources:
        **NODE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite bench select --repeats 5 --json > {output} 2> {log}"


rule times:
    input:
        selection=rules.selection.output if brings_times(PROFILE) else [],
        emulated=emulated_here,
        reference=glob("results/reference/emulated/**/summary.json", recursive=True),
        published=glob(f"{workflow.basedir}/replications/*/published.yaml"),
        networks=glob(f"{workflow.basedir}/replications/*/networks.yaml"),
        layers=glob(f"{workflow.basedir}/replications/*/layers/*.yaml"),
    output:
        expand(
            f"{RESULTS}/tables/{{table}}.csv",
            table=["predicted", "crossings", "iteration_times", "emulated", "emulated_timeline", "run_times"],
        ),
    log:
        f"{RESULTS}/logs/times.log",
    params:
        profile=PROFILE,
    conda:
        "../environment.yml"
    shell:
        "python -m suite times {params.profile} > {log} 2>&1"

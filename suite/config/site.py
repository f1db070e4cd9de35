"""What a Slurm cluster gives to a training run: cluster/slurm/site.yaml, turned into Snakemake's resources."""

from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from suite.config.experiment import WorldConfig
from suite.config.strict import Strict
from suite.errors import ConfigError


class SiteConfig(Strict):
    """A partition as the suite uses it: one rank a task, and where there are GPUs one GPU a rank."""

    partition: str | None = Field(None, description="none: the cluster's default")
    account: str | None = Field(None, description="none: the user's default; leave out where there is no accounting")
    nodes: PositiveInt = Field(1, description="most nodes one job may take")
    tasks_per_node: PositiveInt = Field(1, description="most ranks a node is to run")
    cpus_per_node: PositiveInt = 1
    gpus_per_node: NonNegativeInt = Field(0, description="0: ranks compute on the CPU")
    gpu: str = Field("gpu", description="name of the GPUs among the node's generic resources, with its type if wanted")
    memory_per_task: PositiveInt = Field(4000, description="megabytes")
    minutes: PositiveInt = Field(60, description="of one job; longer runs continue in the next try")
    notice: NonNegativeInt = Field(
        120, description="seconds before the limit at which ranks write a checkpoint and end"
    )
    extra: str = Field("", description="further options of sbatch, such as --qos=long")

    def resources(self, cell: str, world: WorldConfig) -> dict[str, Any]:
        """Snakemake's resources for a run in `world`.

        Raises:
            ConfigError: it does not fit; the sentence names `cell` and the setting that forbids it.
        """
        ranks = world.processes
        each = max(n for n in range(1, min(ranks, self.tasks_per_node) + 1) if ranks % n == 0)
        nodes = ranks // each
        what = f"{cell} has {ranks} rank{'s' * (ranks > 1)}"
        if nodes > self.nodes:
            raise ConfigError(
                f"{what}, which take {nodes} nodes at {each} a node, and slurm.nodes is {self.nodes}; raise it or "
                "slurm.tasks_per_node, or lower world.processes"
            )
        if each * world.threads > self.cpus_per_node:
            raise ConfigError(
                f"{what}, {each} a node with {world.threads} threads, and slurm.cpus_per_node is {self.cpus_per_node}; "
                "lower slurm.tasks_per_node or world.threads"
            )
        if self.gpus_per_node and each > self.gpus_per_node:
            raise ConfigError(
                f"{what}, {each} a node, and slurm.gpus_per_node is {self.gpus_per_node}; every rank takes a GPU, so "
                "lower slurm.tasks_per_node or world.processes"
            )
        options = [f"--signal=TERM@{self.notice}"] * bool(self.notice) + [self.extra] * bool(self.extra)
        found = self._where() | {"mem_mb": self.memory_per_task * each, "cpus_per_task": world.threads, "nodes": nodes}
        if self.gpus_per_node:
            # Otherwise Snakemake's executor would ask for as many GPUs as there are tasks.
            found |= {"gres": f"{self.gpu}:{each}", "tasks_per_gpu": 0}
        if ranks > 1:
            found |= {"mpi": "srun", "tasks": ranks}
            options.append(f"--ntasks-per-node={each}")
        return found | {"slurm_extra": " ".join(options)}

    def node_resources(self) -> dict[str, Any]:
        """Snakemake's resources for a job that measures, with all cores of a node to itself."""
        memory = self.memory_per_task * self.tasks_per_node
        return self._where() | {"mem_mb": memory, "cpus_per_task": self.cpus_per_node, "nodes": 1}

    def _where(self) -> dict[str, Any]:
        found = {"slurm_partition": self.partition, "slurm_account": self.account, "runtime": self.minutes}
        return {name: value for name, value in found.items() if value is not None}


def site_from(config: dict[str, Any]) -> SiteConfig | None:
    """The section `slurm` of a pipeline's configuration, None without it.

    Raises:
        ConfigError: it is not one; the sentence names the setting.
    """
    if "slurm" not in config:
        return None
    try:
        return SiteConfig.model_validate(config["slurm"])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("slurm", *first["loc"])))
        raise ConfigError(
            f"{where}: {first['msg'].removeprefix('Value error, ')}; see cluster/slurm/site.yaml"
        ) from error

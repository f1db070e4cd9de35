"""A cluster's description becomes resources of jobs, or a refusal before anything is submitted."""

import pytest
import yaml

from helpers import ROOT
from suite.config.experiment import WorldConfig
from suite.config.site import SiteConfig, site_from
from suite.errors import ConfigError

SITE = SiteConfig(
    partition="gpu", account="lab", nodes=4, tasks_per_node=4, cpus_per_node=16, gpus_per_node=4, memory_per_task=1000,
    minutes=30, notice=60, extra="--qos=long",
)  # fmt: skip


def world(processes: int, **settings) -> WorldConfig:
    transport = "horovod" if processes > 1 else "virtual"
    return WorldConfig(**{"workers": 16, "processes": processes, "transport": transport} | settings)


def test_one_rank_a_task_and_one_gpu_a_rank():
    assert SITE.resources("x", world(16, threads=2)) == {
        "slurm_partition": "gpu", "slurm_account": "lab", "runtime": 30, "mem_mb": 4000, "cpus_per_task": 2, "nodes": 4,
        "gres": "gpu:4", "tasks_per_gpu": 0, "mpi": "srun", "tasks": 16,
        "slurm_extra": "--signal=TERM@60 --qos=long --ntasks-per-node=4",
    }  # fmt: skip


def test_a_virtual_world_is_one_task():
    found = SITE.resources("x", world(1))
    assert found["nodes"] == 1 and found["gres"] == "gpu:1" and found["mem_mb"] == 1000
    assert "mpi" not in found and "tasks" not in found


def test_ranks_are_spread_evenly():
    site = SITE.model_copy(update={"tasks_per_node": 3})
    found = site.resources("x", world(4))
    assert (found["nodes"], found["tasks"], found["mem_mb"]) == (2, 4, 2000) and "node=2" in found["slurm_extra"]


def test_what_is_not_there_is_not_asked_for():
    plain = SiteConfig(nodes=1, tasks_per_node=4, cpus_per_node=4, notice=0)
    found = plain.resources("x", world(4))
    assert not {"slurm_partition", "slurm_account", "gres"} & found.keys()
    assert found["slurm_extra"] == "--ntasks-per-node=4"


@pytest.mark.parametrize(
    "change, settings, refusal",
    [
        ({"nodes": 2}, {}, "a/b/0 has 16 ranks, which take 4 nodes at 4 a node, and slurm.nodes is 2"),
        ({"gpus_per_node": 2}, {}, "a/b/0 has 16 ranks, 4 a node, and slurm.gpus_per_node is 2"),
        ({}, {"threads": 8}, "a/b/0 has 16 ranks, 4 a node with 8 threads, and slurm.cpus_per_node is 16"),
    ],
)
def test_what_does_not_fit(change: dict, settings: dict, refusal: str):
    with pytest.raises(ConfigError, match=refusal):
        SITE.model_copy(update=change).resources("a/b/0", world(16, **settings))


def test_the_section_of_a_pipelines_configuration():
    assert site_from({"profile": "smoke"}) is None
    with pytest.raises(ConfigError, match="slurm: unknown key 'partitoin'; did you mean 'partition'"):
        site_from({"slurm": {"partitoin": "gpu"}})
    with pytest.raises(ConfigError, match="slurm.nodes: "):
        site_from({"slurm": {"nodes": 0}})


def test_the_file_users_edit_is_one():
    assert site_from(yaml.safe_load((ROOT / "cluster" / "slurm" / "site.yaml").read_text())).nodes == 4

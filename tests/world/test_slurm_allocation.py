"""What is read of a Slurm job, and how ranks find each other; no Slurm needed."""

import socket

import pytest

from suite.config.experiment import WorldConfig
from suite.errors import ConfigError
from suite.record.environment import placement_warnings, spans
from suite.world import slurm
from suite.world.slurm import Allocation, allocation, allocation_for, tasks_per_node
from suite.world.start_rank import reach


@pytest.mark.parametrize(
    "text, expected", [("1", [1]), ("2(x3),1", [2, 2, 2, 1]), ("4,3(x2)", [4, 3, 3]), ("16(x1)", [16])]
)
def test_tasks_per_node_in_full(text: str, expected: list[int]):
    assert tasks_per_node(text) == expected


@pytest.fixture
def told(monkeypatch):
    """Answers of Slurm's commands."""
    answers = {"hostnames": "a1\na2\n", "job": ""}
    monkeypatch.setattr(slurm, "_ask", lambda *command: answers[command[-2]])
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")
    for name in ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    return answers


def test_the_allocation_of_a_batch_script(told, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a[1-2]")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "3,1")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "2")
    assert allocation() == Allocation("7", ("a1", "a1", "a1", "a2"), 2)


def test_slurm_is_asked_where_the_variables_are_gone(told):
    """Snakemake's executor leaves a rule the job's number only."""
    told["job"] = "JobId=7 NodeList=a[1-2] BatchHost=a1 NumNodes=2 NumCPUs=16 NumTasks=8 CPUs/Task=2 ReqB:S:C:T=0:0:*:*"
    assert allocation() == Allocation("7", ("a1",) * 4 + ("a2",) * 4, 2)


def test_outside_of_slurm_there_is_none(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert allocation() is None


@pytest.mark.parametrize(
    "tasks, cpus, processes, threads, refusal",
    [
        (4, 1, 8, 1, "world.processes is 8 and Slurm job 7 has 4 tasks; submit it with --ntasks=8"),
        (8, 1, 8, 2, "world.threads is 2 and Slurm job 7 has 1 CPUs a task; submit it with --cpus-per-task=2"),
    ],
)
def test_a_job_that_is_too_small(monkeypatch, tasks: int, cpus: int, processes: int, threads: int, refusal: str):
    monkeypatch.setattr(slurm, "allocation", lambda: Allocation("7", ("a1",) * tasks, cpus))
    with pytest.raises(ConfigError, match=refusal):
        allocation_for(WorldConfig(workers=16, processes=processes, threads=threads, transport="torch"))


def test_ranks_may_be_fewer_than_tasks_and_one_task_is_a_machine(monkeypatch):
    world = WorldConfig(workers=16, processes=4, transport="torch")
    monkeypatch.setattr(slurm, "allocation", lambda: Allocation("7", ("a1", "a1", "a2", "a2", "a3", "a3"), 1))
    assert allocation_for(world).places(4) == ("a1", "a1", "a2", "a2")
    monkeypatch.setattr(slurm, "allocation", lambda: Allocation("7", ("a1",), 16))
    assert allocation_for(world) is None


def test_the_interface_is_the_one_that_leads_to_the_others(monkeypatch):
    monkeypatch.delenv("SUITE_INTERFACE", raising=False)
    assert reach(["127.0.0.5"]) == ("lo", "127.0.0.1")
    assert reach([]) == ("lo", "127.0.0.1")
    assert reach(["10.0.0.9"], own="127.0.0.1") == ("lo", "127.0.0.1")
    monkeypatch.setenv("SUITE_INTERFACE", "lo")
    assert reach(["192.0.2.1"]) == ("lo", "127.0.0.1")
    monkeypatch.setenv("SUITE_INTERFACE", "ib9")
    with pytest.raises(OSError, match="SUITE_INTERFACE is ib9, and .* has .*lo"):
        reach(["192.0.2.1"])


def test_an_own_name_that_leads_to_loopback_is_noticed(monkeypatch):
    from suite.world.start_rank import name_leads_astray

    for address, astray in (("127.0.1.1", True), ("10.0.0.3", False)):
        monkeypatch.setattr(socket, "gethostbyname", lambda name, address=address: address)
        assert name_leads_astray() is astray


def test_too_few_cores_or_threads_are_said():
    ranks = [
        {"node": "n1", "threads": 8, "cores": 8, "affinity": "0-7"},
        {"node": "n1", "threads": 8, "cores": 1, "affinity": "3"},
        {"node": "n2", "threads": 1, "cores": 8, "affinity": "0-7"},
    ]
    found = placement_warnings(8, ranks)
    assert len(found) == 2
    assert "rank 1 on n1 may use 1 core (3) for 8 threads; ask for --cpus-per-task=8" in found
    assert "rank 2 on n2 computes with 1 threads, not 8" in found


@pytest.mark.parametrize("numbers, text", [(set(), ""), ({3}, "3"), ({0, 1, 2, 5}, "0-2,5"), ({0, 2}, "0,2")])
def test_spans(numbers: set[int], text: str):
    assert spans(numbers) == text

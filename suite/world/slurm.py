"""Inside of a Slurm job: what it was given, and starting ranks on its nodes with srun."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO

from suite.config.experiment import WorldConfig
from suite.errors import ConfigError, SuiteError
from suite.world.ranks import Env, Failure, RankNetwork, plain_environment, rank_environments
from suite.world.start_rank import reach

_START = Path(__file__).with_name("start_rank.py")
_LABELLED = re.compile(r"^ *(\d+): ?(.*)$", re.DOTALL)
_ENDED = re.compile(r"^srun: error: (\S+): tasks? ([\d,-]+): (.*)$")
# As srun names them.
_SIGNALS = {signal.strsignal(number): number for number in signal.valid_signals()}
_LAST_LINES_SECONDS = 2.0
_TRIES = 3  # of srun, where not one rank came to run


@dataclass(frozen=True)
class Allocation:
    """What a Slurm job was given.

    Attributes:
        job: its number.
        nodes: their names, each as often as it may run tasks, in Slurm's order.
        cpus_per_task: how many CPUs were asked for each task.
    """

    job: str
    nodes: tuple[str, ...]
    cpus_per_task: int

    @property
    def tasks(self) -> int:
        """How many ranks it was made for."""
        return len(self.nodes)

    def places(self, ranks: int) -> tuple[str, ...]:
        """The nodes of the first `ranks` tasks."""
        return self.nodes[:ranks]


def allocation() -> Allocation | None:
    """The job this process is in, None outside of one.

    Snakemake's executor takes most of Slurm's variables away from its rules, so Slurm is asked for what is missing.

    Raises:
        SuiteError: Slurm did not answer, or its answer cannot be used.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None or shutil.which("srun") is None:
        return None
    variables = ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE")
    names, counts = (os.environ.get(name) for name in variables)
    cpus = os.environ.get("SLURM_CPUS_PER_TASK")
    if not (names and counts):
        told = job_facts(job)
        names, nodes, tasks = told["NodeList"], int(told["NumNodes"]), int(told["NumTasks"])
        cpus = told.get("CPUs/Task")
        if tasks % nodes:
            raise SuiteError(
                f"the {tasks} tasks of job {job} do not divide over its {nodes} nodes; ask for equally many a node"
            )
        counts = f"{tasks // nodes}(x{nodes})"
    hosts = _ask("scontrol", "show", "hostnames", names).split()
    placed = tuple(host for host, n in zip(hosts, tasks_per_node(counts), strict=True) for _ in range(n))
    return Allocation(job, placed, int(cpus) if cpus and cpus.isdigit() else 1)


def tasks_per_node(text: str) -> list[int]:
    """Slurm's short form in full: "2(x3),1" is [2, 2, 2, 1]."""
    found: list[int] = []
    for part in text.split(","):
        number, repeat = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part).groups()
        found += [int(number)] * int(repeat or 1)
    return found


def job_facts(job: str) -> dict[str, str]:
    """What `scontrol` tells about a job."""
    return _pairs(_ask("scontrol", "--oneliner", "show", "job", job))


def node_addresses(nodes: tuple[str, ...]) -> dict[str, str]:
    """The IPv4 address of every node, as Slurm reaches it, in order.

    Raises:
        SuiteError: a name does not resolve.
    """
    lines = _ask("scontrol", "--oneliner", "show", "node", ",".join(dict.fromkeys(nodes))).splitlines()
    told = {facts["NodeName"]: facts["NodeAddr"] for facts in map(_pairs, filter(None, lines))}
    try:
        return {node: socket.gethostbyname(told[node]) for node in dict.fromkeys(nodes)}
    except (OSError, KeyError) as error:
        raise SuiteError(f"the addresses of {', '.join(dict.fromkeys(nodes))} cannot be found ({error})") from error


def _pairs(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\S+?)=(\S*)", line))


def _ask(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        raise SuiteError(f"`{' '.join(command[:3])}` gave no answer ({reason}); is Slurm's controller up?") from error


def allocation_for(config: WorldConfig) -> Allocation | None:
    """The allocation a world's ranks are to be spread over; None where they are this machine's own.

    That is so outside of Slurm, and in a job of one task, whose cores they then share.

    Raises:
        ConfigError: there are fewer tasks than processes, or fewer CPUs a task than threads.
    """
    found = allocation()
    if found is None or found.tasks == 1 or config.processes == 1:
        return None
    if config.processes > found.tasks:
        raise ConfigError(
            f"world.processes is {config.processes} and Slurm job {found.job} has {found.tasks} tasks; "
            f"submit it with --ntasks={config.processes}, or set world.processes"
        )
    if config.threads > found.cpus_per_task:
        raise ConfigError(
            f"world.threads is {config.threads} and Slurm job {found.job} has {found.cpus_per_task} CPUs a task; "
            f"submit it with --cpus-per-task={config.threads}, or set world.threads"
        )
    return found


class SlurmRanks:
    """The ranks of a run as one step of the job: srun starts, labels and ends them."""

    def __init__(self, config: WorldConfig, found: Allocation, command: list[str], logs: Path):
        self.logs, self._allocation = logs, found
        self._config, self._command = config, command
        self._name = f"suite-{os.getpid()}"
        self._ended = False
        self._noticed: float | None = None

    @contextmanager
    def started(self) -> Iterator["SlurmRanks"]:
        """The step, running; its ranks find each other while the context is open."""
        nodes = self._allocation.places(self._config.processes)
        addresses = node_addresses(nodes)
        try:
            interface, address = reach(
                [other for name, other in addresses.items() if name != os.environ.get("SLURMD_NODENAME", nodes[0])],
                addresses.get(os.environ.get("SLURMD_NODENAME", nodes[0])),
            )
        except OSError as error:
            raise SuiteError(f"{error}; SUITE_INTERFACE names the interface that leads to the other nodes") from error
        with rank_environments(self._config, RankNetwork(interface, address, nodes)) as environments:
            self._line, self._env = self._srun(nodes), self._environment(nodes, addresses, environments)
            self._begin(tries_left=_TRIES - 1)
            try:
                yield self
            finally:
                self._output.close()

    def _srun(self, nodes: tuple[str, ...]) -> list[str]:
        counts = [size for _, size in _sizes(nodes)]
        even = [f"--ntasks-per-node={counts[0]}"] if len(set(counts)) == 1 else []
        # A step inside of a step would wait for the resources of the one it is in.
        inside = ["--overlap"] if "SLURM_STEP_ID" in os.environ else []
        mpi = mpi_of_slurm() if self._config.controller == "mpi" else "none"
        end_with_launcher = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        return [
            *end_with_launcher, "srun", f"--jobid={self._allocation.job}", f"--job-name={self._name}",
            f"--nodes={len(counts)}", f"--ntasks={len(nodes)}", *even, "--distribution=block", *inside,
            # Since Slurm 22.05 a step does not inherit what the job asked for.
            f"--cpus-per-task={self._config.threads}", "--cpu-bind=cores",
            # Every rank sees all GPUs of its node and takes the one of its local rank.
            "--gpu-bind=none",
            "--export=ALL", "--kill-on-bad-exit=1", "--label", "--input=none", f"--mpi={mpi}",
            sys.executable, str(_START), *self._command,
        ]  # fmt: skip

    def _environment(self, nodes: tuple[str, ...], addresses: dict[str, str], ranks: list[Env]) -> Env:
        """What srun hands to every task; `start_rank` picks out what is the task's own."""
        seats = [(node, local, size) for node, size in _sizes(nodes) for local in range(size)]
        shared = plain_environment(self._config)
        gloo = self._config.transport == "horovod" and self._config.controller == "gloo"
        variables = ["GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", *["HOROVOD_GLOO_IFACE"] * gloo]
        own = [{k: v for k, v in rank.items() if shared.get(k) != v} for rank in ranks]
        if len(own) == 1:  # MPI tells ranks their numbers
            local = [{"SUITE_LOCAL_RANK": str(i), "SUITE_LOCAL_SIZE": str(size)} for _, i, size in seats]
            own = [own[0] | of_rank for of_rank in local]
        # One variable may hold 128 KiB: what all ranks have in common is written once.
        common = {k: v for k, v in own[0].items() if all(rank.get(k) == v for rank in own)}
        own = [{k: v for k, v in rank.items() if k not in common} for rank in own]
        places = {
            "common": common,
            "nodes": addresses, "by_host_name": gloo, "interface_variables": variables,
            "ranks": {f"{node}/{i}": rank for (node, i, _), rank in zip(seats, own, strict=True)},
        }  # fmt: skip
        # What the batch script was given for itself would be taken for wishes of this step, and the launcher is on one
        # node only.
        dropped = {
            "SUITE_LAUNCHER",
            "SLURM_NTASKS_PER_NODE",
            "SLURM_CPU_BIND",
            "SLURM_MEM_PER_CPU",
            "SLURM_DISTRIBUTION",
        }
        kept = {key: value for key, value in shared.items() if key not in dropped}
        return kept | {"SUITE_PLACES": json.dumps(places), "SUITE_PLAIN": "1"}

    def _begin(self, tries_left: int) -> None:
        self._tries_left = tries_left
        self.process = subprocess.Popen(
            self._line, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, text=True, errors="replace",
        )  # fmt: skip
        self._output = _Output(self.process, self.logs, self._config.processes)

    def running(self) -> bool:
        """Whether the step has not ended; one that never began is begun again."""
        if self.process.poll() is None:
            return True
        self._output.close()
        if self.process.returncode and not self._output.any_rank_spoke and self._tries_left:
            self._begin(self._tries_left - 1)
            return True
        self._ended = True
        return False

    def failures(self) -> list[Failure]:
        found: dict[int, Failure] = {}
        for line in self._output.own_lines:
            if matched := _ENDED.match(line):
                node, numbers, how = matched.groups()
                exited = re.search(r"exit code (\d+)", how)
                code = int(exited[1]) if exited else -_SIGNALS.get(how.removesuffix(" (core dumped)"), signal.SIGKILL)
                words = f"on {node} ended with exit code {code}" if exited else f"on {node} was ended ({how})"
                for number in _numbers(numbers):
                    found.setdefault(number, Failure(number, words, code, self.logs / f"rank-{number}.log"))
        if found and self._noticed is None:
            self._noticed = time.monotonic()
        # srun tells of an end before it has passed on the last lines of the rank that ended.
        if found and (self._ended or time.monotonic() > self._noticed + _LAST_LINES_SECONDS):
            return list(found.values())
        if self._ended and self.process.returncode and not found:
            code = self.process.returncode
            return [Failure(None, f"srun ended with exit code {code}", code, self.logs / "srun.log")]
        return []

    def ask_to_stop(self) -> bool:
        """Send SIGTERM to every rank: srun would end them at once if it got the signal itself.

        Slurm may not know the step yet; and one that does not begin is not begun again.
        """
        self._tries_left = 0
        step = self._step()
        if step is None:
            return False
        return not subprocess.run(["scancel", "--signal=TERM", step], check=False, capture_output=True).returncode

    def _step(self) -> str | None:
        listing = subprocess.run(
            ["squeue", "--steps", "--noheader", f"--jobs={self._allocation.job}", "--format=%i|%j"],
            check=False, capture_output=True, text=True,
        ).stdout  # fmt: skip
        return next(
            (line.split("|")[0].strip() for line in listing.splitlines() if line.endswith(f"|{self._name}")), None
        )

    def end(self, patience: float) -> None:
        """End what still runs: srun ends its step when it is asked to end."""
        for ask in (self.process.terminate, self.process.kill):
            if self.process.poll() is not None:
                break
            ask()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        if step := self._step():
            subprocess.run(["scancel", "--signal=KILL", step], check=False, capture_output=True)


def _sizes(nodes: tuple[str, ...]) -> list[tuple[str, int]]:
    """Every node with how many ranks it has."""
    return [(node, len(list(same))) for node, same in groupby(nodes)]


def mpi_of_slurm() -> str:
    """Which of Slurm's ways to start MPI ranks.

    Raises:
        ConfigError: it has none that an MPI library speaks.
    """
    offered = subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False)
    kinds = (offered.stdout + offered.stderr).split()
    for kind in ("pmix", "pmi2"):
        if kind in kinds:
            return kind
    raise ConfigError(
        "world.controller is mpi, but this Slurm starts MPI ranks neither by PMIx nor by PMI2 (`srun --mpi=list`); "
        "use gloo"
    )


def _numbers(text: str) -> Iterator[int]:
    """Slurm's "0-2,5" in full."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


class _Output:
    """What srun writes, sorted: rank 0's output to ours, everything else to the ranks' logs, srun's own words aside."""

    def __init__(self, process: subprocess.Popen, logs: Path, ranks: int):
        self.own_lines: list[str] = []
        self.any_rank_spoke = False
        self._logs = [open(logs / f"rank-{number}.log", "w", buffering=1) for number in range(ranks)]
        self._own = open(logs / "srun.log", "w", buffering=1)
        self._threads = [
            threading.Thread(target=self._sort, args=(stream, first), daemon=True)
            for stream, first in ((process.stdout, sys.stdout), (process.stderr, self._logs[0]))
        ]
        for thread in self._threads:
            thread.start()

    def _sort(self, stream: IO[str], of_rank_0: IO[str]) -> None:
        for line in stream:
            labelled = _LABELLED.match(line)
            if labelled and int(labelled[1]) < len(self._logs):
                self.any_rank_spoke = True
                number = int(labelled[1])
                target = of_rank_0 if number == 0 else self._logs[number]
                target.write(labelled[2])
                target.flush()
            else:
                self.own_lines.append(line.rstrip("\n"))
                self._own.write(line)

    def close(self) -> None:
        """Wait for the rest, once srun is gone."""
        for thread in self._threads:
            thread.join(timeout=10)
        for file in (*self._logs, self._own):
            file.close()

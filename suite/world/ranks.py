"""The environment each rank of a run of several processes starts with. No ssh, no horovodrun."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from suite.config.experiment import WorldConfig

Env = dict[str, str]


@dataclass(frozen=True)
class RankNetwork:
    """What carries the messages of ranks.

    Attributes:
        interface: by which a rank sends.
        launcher: address at which ranks find the process that starts them.
        hosts: of the ranks, one each; none where all are processes of this host.
    """

    interface: str
    launcher: str
    hosts: tuple[str, ...] = ()


# A host name that resolves to 127.0.1.1 would mislead Gloo, so that interface and address are always named.
LOOPBACK = RankNetwork("lo", "127.0.0.1")

# For which a rank of Horovod waits for another one's answer. Its own 30 s end a run on a machine that is merely busy; a
# rank that died is noticed at once, one that hangs by `train.stall_limit`.
_GLOO_SECONDS = 300


@dataclass(frozen=True)
class Failure:
    """A rank that ended badly.

    Attributes:
        rank: its number, None when what was to start the ranks failed.
        how: "was killed by SIGKILL", say.
        code: its exit code, negative for a signal.
        log: what it wrote.
    """

    rank: int | None
    how: str
    code: int
    log: Path


def plain_environment(config: WorldConfig) -> Env:
    """What all ranks have in common with each other and, for the most part, with this process."""
    common = dict(
        os.environ, OMP_NUM_THREADS=str(config.threads), PYTHONUNBUFFERED="1", SUITE_LAUNCHER=str(os.getpid())
    )
    if not sys.stdout.isatty():
        common["SUITE_PLAIN"] = "1"
    return common


@contextmanager
def rank_environments(config: WorldConfig, network: RankNetwork = LOOPBACK) -> Iterator[list[Env]]:
    """One set of variables a process to start, valid while the context is open.

    Under Horovod's MPI controller there is one for all, because MPI tells ranks their numbers.
    """
    common = plain_environment(config)
    hosts = network.hosts or ("localhost",) * config.processes
    sizes = [len(list(same)) for _, same in groupby(hosts)]
    ranks = [
        common | {"SUITE_LOCAL_RANK": str(local), "SUITE_LOCAL_SIZE": str(size)}
        for size in sizes
        for local in range(size)
    ]
    ranks = [rank | {"SUITE_RANK": str(number)} for number, rank in enumerate(ranks)]
    if config.transport == "torch":
        with _torch_store(network) as store:
            extra = {"SUITE_STORE": store, "GLOO_SOCKET_IFNAME": network.interface}
            yield [rank | extra for rank in ranks]
    elif config.controller == "mpi":
        # mpirun does not say how many ranks a host has; without it all are taken to be on one.
        yield [common | {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}]
    else:
        with _horovod_gloo(hosts, network) as slots:
            yield [rank | slot for rank, slot in zip(ranks, slots, strict=True)]


@contextmanager
def _torch_store(network: RankNetwork) -> Iterator[str]:
    """Where torch.distributed's ranks find each other, as a URL: a file on one host, this process for several."""
    if network.hosts:
        from torch.distributed import TCPStore

        # Port 0: the system chooses a free one, and nobody else can take it in between.
        store = TCPStore("0.0.0.0", 0, is_master=True, wait_for_workers=False)
        yield f"tcp://{network.launcher}:{store.port}"
        del store
    else:
        with tempfile.TemporaryDirectory(prefix="suite-store-") as folder:
            yield f"file://{folder}/store"


@contextmanager
def _horovod_gloo(hosts: tuple[str, ...], network: RankNetwork) -> Iterator[list[Env]]:
    """Horovod's own rendezvous server in this process, and what each rank needs to find it."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousServer

    slots = ",".join(f"{host}:{len(list(same))}" for host, same in groupby(hosts))
    plan = get_host_assignments(parse_hosts(slots), len(hosts))
    server = RendezvousServer()
    port = server.start()
    server.init(plan)
    try:
        shared = create_run_env_vars(network.launcher, [network.interface], port)
        patience = {"HOROVOD_GLOO_TIMEOUT_SECONDS": os.environ.get("HOROVOD_GLOO_TIMEOUT_SECONDS", _GLOO_SECONDS)}
        yield [{k: str(v) for k, v in (shared | patience | create_slot_env_vars(slot)).items()} for slot in plan]
    finally:
        server.stop()


def command_line(config: WorldConfig, rank_command: list[str]) -> list[str]:
    """What to start for each entry of `rank_environments`."""
    if config.transport != "horovod" or config.controller != "mpi":
        return rank_command
    # As `end_with_launcher` does it for ranks: mpirun is not ours to change, but it need not outlive the launcher.
    bound = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    # Binding is left to the system: Open MPI would pin two ranks to one core on a machine with few.
    placement = ["--oversubscribe", "--bind-to", "none", "-np", str(config.processes)]
    loopback = ["--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", LOOPBACK.interface]
    return [*bound, "mpirun", *root, *placement, *loopback, *rank_command]


def end_with_launcher() -> None:
    """In a rank: be killed by the system when the process that started this one dies, however it dies."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG
    launcher = int(os.environ.get("SUITE_LAUNCHER", 0))
    try:
        os.kill(launcher, 0)
    except ProcessLookupError:  # it died before the line above took effect
        os._exit(1)

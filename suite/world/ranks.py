"""The environment each rank of a local multi-process run starts with. No ssh, no horovodrun."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from suite.config.experiment import WorldConfig

Env = dict[str, str]


@dataclass(frozen=True)
class RankNetwork:
    """What carries the messages of ranks that this machine starts.

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


@contextmanager
def rank_environments(config: WorldConfig, network: RankNetwork = LOOPBACK) -> Iterator[list[Env]]:
    """One set of variables a process to start, valid while the context is open.

    Under Horovod's MPI controller one process, mpirun, is started and starts the ranks itself.
    """
    common = dict(
        os.environ, OMP_NUM_THREADS=str(config.threads), PYTHONUNBUFFERED="1", SUITE_LAUNCHER=str(os.getpid())
    )
    if not sys.stdout.isatty():
        common["SUITE_PLAIN"] = "1"
    ranks = [common | {"SUITE_RANK": str(r), "SUITE_LOCAL_RANK": str(r)} for r in range(config.processes)]
    if config.transport == "torch":
        with tempfile.TemporaryDirectory(prefix="suite-store-") as folder:
            extra = {"SUITE_STORE": str(Path(folder) / "store"), "GLOO_SOCKET_IFNAME": network.interface}
            yield [rank | extra for rank in ranks]
    elif config.controller == "mpi":
        yield [common | {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}]
    else:
        with _horovod_gloo(config.processes, network) as slots:
            yield [rank | slot for rank, slot in zip(ranks, slots, strict=True)]


@contextmanager
def _horovod_gloo(processes: int, network: RankNetwork) -> Iterator[list[Env]]:
    """Horovod's own rendezvous server in this process, and what each rank needs to find it."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousServer

    hosts = ",".join(f"{host}:1" for host in network.hosts) or f"localhost:{processes}"
    plan = get_host_assignments(parse_hosts(hosts), processes)
    server = RendezvousServer()
    port = server.start()
    server.init(plan)
    try:
        shared = create_run_env_vars(network.launcher, [network.interface], port)
        yield [{k: str(v) for k, v in (shared | create_slot_env_vars(slot)).items()} for slot in plan]
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

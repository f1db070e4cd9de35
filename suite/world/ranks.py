"""The environment each rank of a local multi-process run starts with. No ssh, no horovodrun."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.config.experiment import WorldConfig

Env = dict[str, str]

# Ranks of a local run talk over loopback; a host name that resolves to 127.0.1.1 would otherwise mislead Gloo.
_INTERFACE, _ADDRESS = "lo", "127.0.0.1"


@contextmanager
def rank_environments(config: WorldConfig) -> Iterator[list[Env]]:
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
            extra = {"SUITE_STORE": str(Path(folder) / "store"), "GLOO_SOCKET_IFNAME": _INTERFACE}
            yield [rank | extra for rank in ranks]
    elif config.controller == "mpi":
        yield [common | {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi"}]
    else:
        with _horovod_gloo(config.processes) as slots:
            yield [rank | slot for rank, slot in zip(ranks, slots, strict=True)]


@contextmanager
def _horovod_gloo(processes: int) -> Iterator[list[Env]]:
    """Horovod's own rendezvous server in this process, and what each rank needs to find it."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_run_env_vars, create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousServer

    plan = get_host_assignments(parse_hosts(f"localhost:{processes}"), processes)
    server = RendezvousServer()
    port = server.start()
    server.init(plan)
    try:
        shared = create_run_env_vars(_ADDRESS, [_INTERFACE], port)
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
    network = ["--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", _INTERFACE]
    return [*bound, "mpirun", *root, *placement, *network, *rank_command]


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

"""A Slurm of one's own on one machine: real daemons, several nodes, fake GPUs, no accounting.

    python cluster/slurm/private_slurm.py -- bash          four nodes, for as long as the shell is open

Everything runs in namespaces of its own. Slurm's usual ports and paths are therefore free whatever else the machine
does, a job sees them without a variable that could get lost on the way, and nothing outlives the first process of the
namespace, which the kernel kills with the one that started it. Needs Debian's packages slurm-wlm, munge and iproute2,
and root.
"""

import argparse
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TOOLS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "munged": "munge", "ip": "iproute2", "unshare": "util-linux"}
PARTITION = "gpu"
_PATIENCE = 180.0  # seconds for the daemons to come up on a busy machine
# Any character devices serve as fake GPUs; all nodes may name the same ones.
_DEVICES = "/dev/null,/dev/zero,/dev/full,/dev/random"
_GPUS = len(_DEVICES.split(","))
# PMIx makes a folder of the same name on every node, so each has one of its own to make it in.
_PMIX = "/run/pmix"
_NODE = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs {_PMIX} && exec slurmd -D -N "$0"']


def why_not() -> str | None:
    """Why no private Slurm can run here, None where it can."""
    for tool, package in TOOLS.items():
        if shutil.which(tool, path=_path()) is None:
            return f"there is no {tool} (Debian: apt install {package})"
    tried = subprocess.run([*_unshare(), "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no namespaces can be made here ({tried.stderr.strip()})"


class PrivateSlurm:
    """A running one.

    Attributes:
        pid: the first process of its namespaces, as seen from outside.
        folder: its configuration, state and logs.
        nodes: how many there are, called n1, n2, ...
    """

    def __init__(self, pid: int, folder: Path, nodes: int):
        self.pid, self.folder, self.nodes = pid, folder, nodes

    def inside(self, *command: object, cwd: Path | None = None) -> list[str]:
        """The command line that runs a command where this Slurm is the machine's."""
        spaces = ["--mount", "--pid", "--net", "--ipc", "--uts"]
        enter = ["nsenter", "--target", str(self.pid), *spaces, f"--wdns={cwd or os.getcwd()}"]
        return [*enter, *map(str, command)]

    def run(self, *command: object, cwd: Path | None = None, **options) -> subprocess.CompletedProcess:
        """Run a command inside and return what it printed."""
        return subprocess.run(self.inside(*command, cwd=cwd), capture_output=True, text=True, **options)


@contextmanager
def private_slurm(folder: Path, nodes: int = 4, cpus: int = 4) -> Iterator[PrivateSlurm]:
    """A Slurm for the time of the context, its files in `folder`; gone afterwards, also if this process is killed.

    Raises:
        RuntimeError: it did not come up; the message holds the end of its logs.
    """
    if reason := why_not():
        raise RuntimeError(f"no private Slurm can run here: {reason}")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    command = [*_unshare(), sys.executable, __file__, "supervise", str(folder), str(nodes), str(cpus)]
    with open(folder / "supervisor.log", "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_die_with_parent,
            start_new_session=True,
        )
    try:
        yield PrivateSlurm(_ready(process, folder), folder, nodes)
    finally:
        process.kill()  # and the kernel everything in the namespace
        process.wait()


def _unshare() -> list[str]:
    return [
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--ipc",
        "--uts",
        "--fork",
        "--kill-child=KILL",
        "--mount-proc",
    ]


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def _ready(process: subprocess.Popen, folder: Path) -> int:
    """Wait for the supervisor to say that all nodes are idle; its process number as seen from here."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if (folder / "ready").exists():
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            return int(children[0])
        time.sleep(0.05)
    process.kill()
    process.wait()
    logs = [folder / "supervisor.log", *sorted((folder / "log").glob("*.log"))]
    ends = "\n".join(f"{log.name}: {log.read_text(errors='replace')[-600:]}" for log in logs if log.exists())
    raise RuntimeError(f"the private Slurm did not come up within {_PATIENCE:.0f} s:\n{ends}")


# -- inside of the namespaces -----------------------------------------------------------------------------------------


def _supervise(folder: Path, nodes: int, cpus: int) -> None:
    """The first process in the namespaces: starts the daemons, says so, and stays to collect what ends."""
    os.environ["PATH"] = _path()
    (folder / "ready").unlink(missing_ok=True)
    host = socket.gethostname()
    _private_paths(folder, host, nodes)
    _configure(folder, host, nodes, cpus)
    log = folder / "log"
    daemons = [_start(log / "munged.out", "munged", "--foreground", "--force", f"--key-file={folder}/munge.key")]
    _wait(lambda: Path("/run/munge/munge.socket.2").exists(), "munged")
    daemons.append(_start(log / "slurmctld.out", "slurmctld", "-D", "-c"))
    daemons += [_start(log / f"n{i}.out", *_NODE, f"n{i}") for i in range(1, nodes + 1)]
    _wait(lambda: _idle() == nodes, "all nodes")
    (folder / "ready").touch()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        pid, status = os.wait()  # orphans of the namespace are this process's children
        if any(daemon.pid == pid for daemon in daemons):
            print(f"daemon {pid} ended with status {status}", flush=True)


def _private_paths(folder: Path, host: str, nodes: int) -> None:
    """Slurm's and munge's usual folders, empty and seen in here only; a network whose only link is loopback."""
    for path in ("/run", "/etc/slurm"):
        Path(path).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
    for path in ("/run/munge", _PMIX):
        Path(path).mkdir()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # As Debian's installer does it: the host's own name leads to an address no other host can reach.
    lines = ["127.0.0.1 localhost", f"127.0.1.1 {host}"]
    for number in range(1, nodes + 1):
        subprocess.run(["ip", "address", "add", f"{address(number)}/24", "dev", "lo"], check=True)
        lines.append(f"{address(number)} n{number}")
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)


def address(number: int) -> str:
    """Of node n<number>."""
    return f"10.99.0.{number}"


def _configure(folder: Path, host: str, nodes: int, cpus: int) -> None:
    for part in ("state", "log"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    addresses = ",".join(address(number) for number in range(1, nodes + 1))
    names = f"n[1-{nodes}]"
    Path("/etc/slurm/slurm.conf").write_text(f"""\
ClusterName=private
SlurmctldHost={host}({address(1)})
AuthType=auth/munge
AuthInfo=cred_expire=10
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir=/run/spool-%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
ReturnToService=2
KillWait=10
MinJobAge=600
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
GresTypes=gpu
NodeName={names} NodeHostname={host} NodeAddr={addresses} Port=[7001-{7000 + nodes}] CPUs={cpus} RealMemory=8000 \
Gres=gpu:fake:{_GPUS} State=UNKNOWN
PartitionName={PARTITION} Nodes={names} Default=YES MaxTime=INFINITE State=UP
""")
    Path("/etc/slurm/mpi.conf").write_text(f"PMIxCliTmpDirBase={_PMIX}\n")
    Path("/etc/slurm/gres.conf").write_text(f"NodeName={names} Name=gpu Type=fake File={_DEVICES}\n")


def _start(log: Path, *command: str) -> subprocess.Popen:
    with open(log, "wb") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def _idle() -> int:
    states = subprocess.run(["sinfo", "-h", "-N", "-o", "%t"], capture_output=True, text=True, check=False)
    return states.stdout.split().count("idle")


def _wait(ready, name: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            sys.exit(f"{name} did not come up")
        time.sleep(0.1)


# -- the command line -------------------------------------------------------------------------------------------------


def main() -> int:
    """See the top of this file."""
    if sys.argv[1:2] == ["supervise"]:
        _supervise(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    parser = argparse.ArgumentParser(description="A Slurm of one's own, for a command's time.")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cpus", type=int, default=4, help="of each node, whatever the machine has")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="private-slurm-") as folder:
        with private_slurm(Path(folder), arguments.nodes, arguments.cpus) as slurm:
            return subprocess.run(slurm.inside(*arguments.command)).returncode


if __name__ == "__main__":
    sys.exit(main())

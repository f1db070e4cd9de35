"""Looks at a Slurm cluster: a small job on every node tells what the node has and how fast it reaches the next one.

`python -m suite.measure.cluster ADDRESS PORT NODE TOKEN` is that job: it connects to the process that submitted it.
"""

import importlib.util
import json
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suite.config.site import SiteConfig
from suite.errors import ConfigError, SuiteError
from suite.record.environment import installed_version
from suite.world.check import horovod_build
from suite.world.slurm import node_addresses
from suite.world.start_rank import reach

_PINGS = 200
_BYTES, _CHUNK = 64 * 2**20, 2**20
_DEAF_SECONDS = 60.0  # a partner that says nothing for so long is taken for gone

Row = dict[str, Any]


def survey(site: SiteConfig, patience: float, only: tuple[str, ...] = ()) -> list[Row]:
    """Submit a job to every node of the site's partition and collect what they say.

    Args:
        site: partition, account and further options of the jobs.
        patience: seconds to wait for all of them.
        only: nodes to ask; all that are up, if empty.

    Returns:
        A row a node, in Slurm's order: `node`, and either `missing` with the reason or `python`, `torch`, `horovod`
        (controllers), `cores`, `gpus`, `shared` (sees the folder this process is in), `skew` (seconds its clock is
        ahead), and, where another node answered, `peer`, `latency` (seconds there and back), `bandwidth` (bytes a
        second), `interface`.

    Raises:
        ConfigError: Slurm is not here, or the partition has no node that is up.
        SuiteError: Slurm did not answer.
    """
    if shutil.which("sbatch") is None:
        raise ConfigError("there is no sbatch in PATH; run this on a login node of the cluster")
    nodes = only or _nodes_up(site)
    try:
        _, address = reach(list(node_addresses(nodes).values()))
    except OSError as error:
        raise SuiteError(f"no way leads from here to {nodes[0]} ({error}); name it in SUITE_INTERFACE") from error
    with tempfile.TemporaryDirectory(prefix=".suite-doctor-", dir=".") as folder, socket.create_server(("", 0)) as door:
        token = Path(folder).resolve() / "token"
        token.write_text("seen")
        port = door.getsockname()[1]
        with _jobs(site, nodes, [address, str(port), str(token)], token.parent) as refused:
            found = _receive(door, nodes, time.monotonic() + patience, set(refused))
    rows = []
    for node in nodes:
        reason = refused.get(node) or f"no answer within {patience:.0f} s: busy, or down"
        rows.append({"node": node} | found.get(node, {"missing": reason}))
    return rows


def _nodes_up(site: SiteConfig) -> tuple[str, ...]:
    where = [f"--partition={site.partition}"] if site.partition else []
    listing = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--responding", "--format=%N %t", *where], capture_output=True, text=True
    )
    if listing.returncode:
        raise SuiteError(f"sinfo failed ({listing.stderr.strip()}); is Slurm's controller up?")
    states = [line.split() for line in listing.stdout.splitlines()]
    up = dict.fromkeys(node for node, state in states if state in ("idle", "mix", "alloc"))
    if not up:
        raise ConfigError(f"partition {site.partition or '(default)'} has no node that is up; see `sinfo -s`")
    return tuple(up)


@contextmanager
def _jobs(site: SiteConfig, nodes: tuple[str, ...], told: list[str], folder: Path) -> Iterator[dict[str, str]]:
    """A job on each node, gone when the context is left; yields why Slurm refused those it did."""
    address, port, token = told
    options = [
        f"--{name}={value}" for name, value in (("partition", site.partition), ("account", site.account)) if value
    ]
    options += [f"--gres={site.gpu}:{site.gpus_per_node}"] * bool(site.gpus_per_node) + site.extra.split()
    jobs, refused = [], {}
    for node in nodes:
        command = shlex.join([sys.executable, "-m", "suite.measure.cluster", address, port, node, token])
        line = ["sbatch", "--parsable", f"--nodelist={node}", "--ntasks=1", "--time=5", "--job-name=suite-doctor"]
        line += [f"--output={folder}/{node}.log", *options, f"--wrap=exec {command}"]
        sent = subprocess.run(line, capture_output=True, text=True)
        if sent.returncode:
            refused[node] = (sent.stderr.strip().splitlines() or ["sbatch failed"])[-1].removeprefix("sbatch: error: ")
        else:
            jobs.append(sent.stdout.split(";")[0].strip())
    try:
        yield refused
    finally:
        if jobs:
            subprocess.run(["scancel", *jobs], check=False, capture_output=True)


def _receive(door: socket.socket, nodes: tuple[str, ...], deadline: float, refused: set[str]) -> dict[str, Row]:
    """Facts of all nodes; then each in turn, alone on the network, measures the way to the next."""
    lines: dict[str, _Line] = {}
    found: dict[str, Row] = {}
    while len(lines) < len(nodes) - len(refused) and time.monotonic() < deadline:
        door.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            line = _Line(door.accept()[0])
            row = line.read()
            row["skew"] = line.skew()
        except (OSError, ValueError):
            continue
        if row.get("node") in nodes:
            lines[row["node"]], found[row["node"]] = line, row
    present = [node for node in nodes if node in lines]
    for node, peer in zip(present, present[1:] + present[:1], strict=True):
        if peer != node:
            try:
                lines[node].write({"at": found[peer]["door"]})
                found[node] |= lines[node].read() | {"peer": peer}
            except (OSError, ValueError) as error:
                found[node]["peer"] = f"{peer} ({error})"
    for line in lines.values():
        line.close()
    for row in found.values():
        row.pop("door", None)
    return found


class _Line:
    """A connection that carries one JSON object a line."""

    def __init__(self, connection: socket.socket):
        self._socket = connection
        connection.settimeout(_DEAF_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = connection.makefile("rwb")

    def read(self) -> Row:
        line = self._file.readline()
        if not line:
            raise OSError("the connection was closed")
        return json.loads(line)

    def write(self, value: Row) -> None:
        self._file.write(json.dumps(value).encode() + b"\n")
        self._file.flush()

    def skew(self) -> float:
        """Seconds the other side's clock is ahead, from the quickest of a few questions."""
        best = (float("inf"), 0.0)
        for _ in range(20):
            asked, began = time.time(), time.monotonic()
            self.write({"clock": True})
            told = self.read()["clock"]
            took = time.monotonic() - began
            best = min(best, (took, told - asked - took / 2))
        return best[1]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


# -- the job on a node ------------------------------------------------------------------------------------------------


def _probe(address: str, port: int, node: str, token: Path) -> None:
    door = socket.create_server(("", 0))
    threading.Thread(target=_serve, args=(door,), daemon=True).start()
    line = _Line(socket.create_connection((address, port), timeout=_DEAF_SECONDS))
    own = node_addresses((node,))[node]
    interface, here = reach([address], own)
    line.write(_facts(node, token) | {"interface": interface, "door": [here, door.getsockname()[1]]})
    while True:
        try:
            asked = line.read()
        except OSError:
            return
        line.write({"clock": time.time()} if "clock" in asked else _way_to(*asked["at"]))


def _facts(node: str, token: Path) -> Row:
    import torch

    build = horovod_build() if importlib.util.find_spec("horovod") else None
    return {
        "node": node, "python": ".".join(map(str, sys.version_info[:3])), "torch": torch.__version__,
        "suite": installed_version("lags-suite"),
        "horovod": ", ".join(build.controllers) if build and build.controllers else "none",
        "cores": len(os.sched_getaffinity(0)), "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "shared": token.exists() and token.read_text() == "seen",
    }  # fmt: skip


def _way_to(host: str, port: int) -> Row:
    """Time there and back of a small message, and bytes a second of large ones."""
    with socket.create_connection((host, port), timeout=_DEAF_SECONDS) as way:
        way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(_PINGS):
            began = time.perf_counter()
            way.sendall(b"p")
            way.recv(1)
            times.append(time.perf_counter() - began)
        chunk = bytes(_CHUNK)
        began = time.perf_counter()
        way.sendall(b"b")
        for _ in range(_BYTES // _CHUNK):
            way.sendall(chunk)
        way.recv(1)  # that all has arrived
        took = time.perf_counter() - began
    return {"latency": statistics.median(times), "bandwidth": _BYTES / took}


def _serve(door: socket.socket) -> None:
    """The other end of `_way_to`, for one partner after another."""
    while True:
        with door.accept()[0] as partner:
            partner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (kind := partner.recv(1)) == b"p":
                partner.sendall(b"p")
            if kind == b"b":
                left = _BYTES
                while left and (got := len(partner.recv(min(left, _CHUNK)))):
                    left -= got
                partner.sendall(b"d")


if __name__ == "__main__":
    _probe(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))

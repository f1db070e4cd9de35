"""Hosts on one machine: a network namespace each, joined to one switch by links of a given rate.

Namespaces, bridge and cables have no names in the system and belong to the processes that made them: when the last one
is gone, however it went, the kernel removes everything. Nothing has to be cleaned up, and two emulations cannot meet.
"""

import ctypes
import os
import socket
import subprocess
from pathlib import Path

from suite.errors import SuiteError

# RFC 2544 sets this network aside for benchmarks. It is never routed: the switch is not connected to anything.
_SWITCH_ADDRESS = "198.18.255.254"
_PREFIX = 16
INTERFACE = "eth0"
# What the kernel hands to a cable at once, and a bucket that lets it pass whole: cutting it into packets of 1,500 bytes
# is a network card's work, and here it would be these cores'.
_SEGMENT, _BURST, _QUEUE_SECONDS = 32768, 65536, 0.03

_NEW_USER, _NEW_NETWORK, _NEW_HOSTNAME = 0x10000000, 0x40000000, 0x04000000  # CLONE_NEWUSER, _NEWNET, _NEWUTS


def host_address(number: int) -> str:
    """The address of host `number`, counted from 0."""
    return f"198.18.{number // 250}.{number % 250 + 1}"


def become_switch() -> str:
    """Move this process into a network of its own that holds nothing but a switch; returns the switch's address.

    As root the process needs no more than that; anybody else becomes root of a user namespace first, which most systems
    allow. To be called before the process has a second thread.
    """
    user, group = os.geteuid(), os.getegid()
    if may_make_networks():
        _unshare(_NEW_NETWORK)
    else:
        _unshare(_NEW_USER | _NEW_NETWORK)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    address = f"addr add {_SWITCH_ADDRESS}/{_PREFIX} dev switch"
    _batch("ip", ["link add switch type bridge", "link set switch up", "link set lo up", address])
    return _SWITCH_ADDRESS


def try_cable() -> None:
    """Shape a cable that leads nowhere: whether this kernel can."""
    _batch("ip", ["link add left type veth peer name right"])
    _batch("tc", [f"qdisc replace dev left root {_limits(1e9)}"])


def may_make_networks() -> bool:
    """Whether this process has CAP_SYS_ADMIN and CAP_NET_ADMIN, as root usually has."""
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    needed = 1 << 21 | 1 << 12
    return int(effective.split()[1], 16) & needed == needed


class Host:
    """This process as a host of its own: own interfaces, own name, a cable to the switch it was started in."""

    def __init__(self, number: int):
        """Leave the switch's namespace and plug a cable in at both ends. Before the process has a second thread."""
        self.number, self.address, self._switch = number, host_address(number), os.getppid()
        _unshare(_NEW_NETWORK | _NEW_HOSTNAME)
        # Horovod 0.28.1 asks for the address of the host's own name in places; a name that is an address has one.
        socket.sethostname(self.address)
        port = f"port{number}"
        cable = f"gso_max_size {_SEGMENT} type veth peer name {port} gso_max_size {_SEGMENT} netns {self._switch}"
        address = f"addr add {self.address}/{_PREFIX} dev {INTERFACE}"
        _batch("ip", [f"link add {INTERFACE} {cable}", address, "link set lo up", f"link set {INTERFACE} up"])
        _batch("ip", [f"link set {port} master switch up"], self._at_switch)
        # Every kernel has it, and at a local network's round trips Linux's default behaves like it. BBR, which some
        # machines prefer, paces bursts as short as these and takes a third longer.
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")

    @property
    def _at_switch(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._switch}/ns/net"]

    def shape(self, rate: float) -> None:
        """Limit the cable to `rate` bit/s in each direction, by a token bucket."""
        for device, where in ((INTERFACE, []), (f"port{self.number}", self._at_switch)):
            _batch("tc", [f"qdisc replace dev {device} root {_limits(rate)}"], where)

    def bytes_sent(self) -> int:
        """What the kernel has counted on the cable in the direction of the switch, headers included."""
        for line in Path("/proc/self/net/dev").read_text().splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == INTERFACE:
                return int(counters.split()[8])
        raise SuiteError(f"host {self.number} has lost its interface {INTERFACE}")


def _limits(rate: float) -> str:
    return f"tbf rate {rate:.0f}bit burst {_BURST} latency {1e3 * _QUEUE_SECONDS:g}ms"


def _unshare(what: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(what):
        raise SuiteError(f"a network of its own was refused to this process ({os.strerror(ctypes.get_errno())})")


def _batch(tool: str, commands: list[str], prefix: list[str] | None = None) -> None:
    """Run commands of `ip` or `tc`."""
    command = [*(prefix or []), tool, "-batch", "-"]
    done = subprocess.run(command, input="\n".join(commands), text=True, capture_output=True, check=False)
    if done.returncode:
        raise SuiteError(f"the emulated network could not be built: {tool} said: {done.stderr.strip()}")

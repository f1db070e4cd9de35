"""Started by srun on every node as a rank: takes its place in the world and becomes the rank's command.

Standard library only and run by its path, so that nothing is imported twice. The launcher describes the world in the
variable SUITE_PLACES; which of its ranks this one is, and by which interface it reaches the others, is known here only.
"""

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys

_GET_ADDRESS = 0x8915  # SIOCGIFADDR
_NEW_USER, _NEW_HOSTNAME = 0x10000000, 0x04000000  # CLONE_NEWUSER, CLONE_NEWUTS


def reach(others: list[str], own: str | None = None) -> tuple[str, str]:
    """Interface and address by which this host reaches others.

    The interface that SUITE_INTERFACE names; else the one with the address `own`, if this host has it; else the one the
    system sends by to the first of the others.

    Args:
        others: their IPv4 addresses; none where all ranks are on this host.
        own: the address other hosts know this one by, where that is known.

    Raises:
        OSError: there is no such interface, or no way to them.
    """
    addresses = _addresses()
    named = os.environ.get("SUITE_INTERFACE")
    if named:
        if named not in addresses:
            raise OSError(f"SUITE_INTERFACE is {named}, and {socket.gethostname()} has {', '.join(addresses)}")
        return named, addresses[named][0]
    if not others:
        return "lo", "127.0.0.1"
    if own not in {address for of_one in addresses.values() for address in of_one}:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((others[0], 9))  # sends nothing: the system only chooses the way
            own = probe.getsockname()[0]
    # Addresses beyond an interface's first are not told by the call above; loopback is where such tests put them.
    return next((name for name, of_one in addresses.items() if own in of_one), "lo"), own


def _addresses() -> dict[str, list[str]]:
    """IPv4 addresses by interface."""
    found: dict[str, list[str]] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(probe.fileno(), _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has none
            found[name] = [socket.inet_ntoa(answer[20:24])]
    return found


def name_leads_astray() -> bool:
    """Whether this host's own name resolves to a loopback address, as Debian's installer sets it up."""
    try:
        return socket.gethostbyname(socket.gethostname()).startswith("127.")
    except OSError:
        return True


def answer_to(address: str) -> None:
    """Make this process's host name its address, which needs no table to be resolved.

    Horovod 0.28.1 looks the host's own name up for its process sets, whatever interface it was told to use.

    Raises:
        OSError: the system does not let everybody make user namespaces.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_HOSTNAME) != 0:
        if libc.unshare(_NEW_USER | _NEW_HOSTNAME) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        with open("/proc/self/setgroups", "w") as file:
            file.write("deny")
        for kind, number in (("uid", user), ("gid", group)):
            with open(f"/proc/self/{kind}_map", "w") as file:
                file.write(f"{number} {number} 1")
    socket.sethostname(address)


def main(command: list[str]) -> None:
    """Become `command` with the variables of this task's rank."""
    places = json.loads(os.environ.pop("SUITE_PLACES"))
    node, rank = os.environ["SLURMD_NODENAME"], os.environ["SLURM_PROCID"]
    interface, address = reach([a for name, a in places["nodes"].items() if name != node], places["nodes"][node])
    if places["by_host_name"] and len(places["nodes"]) > 1 and name_leads_astray():
        try:
            answer_to(address)
        except OSError as error:
            sys.exit(
                f"suite: the name of {node} resolves to a loopback address, which Horovod would tell the other nodes "
                f"({error.strerror}); correct its /etc/hosts, or set world.transport to torch"
            )
    os.environ |= {"SUITE_RANK": rank, **places["common"], **places["ranks"][f"{node}/{os.environ['SLURM_LOCALID']}"]}
    os.environ |= {key: interface for key in places["interface_variables"]}
    os.execvp(command[0], command)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"suite: {error}")

"""Whether this machine can emulate a network: `python -m suite.emulate.check` tries it."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable

import psutil

from suite.emulate.grid import Emulation

_TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}
# What a host takes beside vectors of the gradient's length: most of torch is shared between processes.
_HOST_BYTES, _VECTORS = 2.5e8, 3


def why_not(cells: Iterable[Emulation] = ()) -> str | None:
    """Why there can be no emulation here, or not of these cells, in words; None where there can.

    Takes a tenth of a second and does not need torch.
    """
    needed = max((_memory(emulation) for emulation in cells), default=0.0)
    available = psutil.virtual_memory().available
    if needed > available:
        return (
            f"the hosts need about {needed / 2**30:.1f} GiB of memory and {available / 2**30:.1f} are free, so emulate "
            "fewer"
        )
    missing = next((tool for tool in _TOOLS if shutil.which(tool) is None), None)
    if missing:
        return f"there is no {missing} in PATH (Debian: apt install {_TOOLS[missing]})"
    if importlib.util.find_spec("horovod") is None:
        return "Horovod is not installed (`make setup` says why)"
    tried = subprocess.run([sys.executable, "-m", "suite.emulate.check"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


def _memory(emulation: Emulation) -> float:
    """Bytes that all hosts of a cell take."""
    size = sum(layer.size for layer in emulation.layers.layers)
    return emulation.workers * (_HOST_BYTES + _VECTORS * 4 * size)


def _try() -> None:
    """A switch with one shaped cable, which are gone when this process is."""
    from suite.emulate.hosts import become_switch, try_cable
    from suite.errors import SuiteError

    try:
        become_switch()
        try_cable()
    except (SuiteError, OSError) as error:
        sys.exit(f"{error}; it takes root, or a system that lets everybody make user namespaces")


if __name__ == "__main__":
    _try()

"""Whether this machine can emulate a network: `python -m suite.emulate.check` tries it."""

import importlib.util
import shutil
import subprocess
import sys

_TOOLS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}


def why_not() -> str | None:
    """Why there can be no emulation here, in words; None where there can. Takes a tenth of a second, without torch."""
    missing = next((tool for tool in _TOOLS if shutil.which(tool) is None), None)
    if missing:
        return f"there is no {missing} in PATH (Debian: apt install {_TOOLS[missing]})"
    if importlib.util.find_spec("horovod") is None:
        return "Horovod is not installed (`make setup` says why)"
    tried = subprocess.run([sys.executable, "-m", "suite.emulate.check"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else tried.stderr.strip().splitlines()[-1]


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

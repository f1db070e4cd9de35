"""Names of hosts, and whether this machine can have them."""

import os
import subprocess
import sys

import pytest

from helpers import ROOT, require
from suite.emulate.check import why_not
from suite.emulate.hosts import host_address


def test_addresses_differ():
    assert len({host_address(number) for number in range(2000)}) == 2000
    assert host_address(0) == "198.18.0.1" and host_address(250) == "198.18.1.1"


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not() == "there is no ip in PATH (Debian: apt install iproute2)"


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to become somebody else")
def test_it_takes_no_root_where_user_namespaces_are_allowed(tmp_path):
    """As nobody, with the system's own Python, which everybody may run."""
    require("emulation", why_not() is None, f"no emulated network: {why_not()}")
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("the system has no Python of its own")
    code = (
        (ROOT / "suite" / "emulate" / "hosts.py")
        .read_text()
        .replace("from suite.errors import SuiteError", "SuiteError = OSError")
    )
    (tmp_path / "hosts.py").write_text(code + "\nprint(become_switch()); try_cable(); print(may_make_networks())\n")
    tmp_path.chmod(0o755)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-"]
    done = subprocess.run(command, input=(tmp_path / "hosts.py").read_text(), capture_output=True, text=True, cwd="/")
    if "refused" in done.stderr:
        pytest.skip("this system lets nobody but root make namespaces")
    assert done.stdout.split() == ["198.18.255.254", "True"], done.stderr


def test_the_check_is_a_program():
    done = subprocess.run([sys.executable, "-m", "suite.emulate.check"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode == 0) == (why_not() is None), done.stderr

"""Real emulations on a few hosts: bytes, plans, interruptions. What they leave behind when killed: nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from helpers import ROOT, require
from suite.emulate.check import why_not

pytestmark = [pytest.mark.slow, pytest.mark.horovod, pytest.mark.alone]

# Two layers of half a million entries each, on a device that takes 20 ms for them.
LAYERS = {
    "forward": 0.005,
    "layers": [
        {"name": "first", "size": 500_000, "backward": 0.005, "select": 0.001},
        {"name": "last", "size": 500_000, "backward": 0.005, "select": 0.004},
    ],
    "select_whole": 0.006,
    "source": "made up",
}


@pytest.fixture(scope="module", autouse=True)
def able():
    reason = why_not()
    require("emulation", reason is None, f"no emulated network: {reason}")


@pytest.fixture
def layers(tmp_path) -> Path:
    path = tmp_path / "layers.yaml"
    path.write_text(yaml.safe_dump(LAYERS))
    return path


def command(layers: Path, *arguments: str) -> list[str]:
    out = ["--out", str(layers.parent / "emulated")]
    return [sys.executable, "-m", "suite", "emulate", str(layers), "--workers", "4", *out, *arguments]


def emulate(layers: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(layers, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=300)


def summaries(layers: Path) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in layers.parent.glob("emulated/**/summary.json")}


def namespaces() -> set[str]:
    """The network namespaces of all processes."""
    found = set()
    for process in psutil.process_iter():
        try:
            found.add(os.readlink(f"/proc/{process.pid}/ns/net"))
        except OSError:
            pass
    return found


def of_emulations() -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if "suite.emulate." in " ".join(p.info["cmdline"] or [])]


def links() -> set[str]:
    return set(os.listdir("/sys/class/net"))


def gone(before: set[str], seconds: float = 15) -> bool:
    """Whether all processes and namespaces of emulations end within a few seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not of_emulations() and namespaces() <= before:
            return True
        time.sleep(0.2)
    return False


def test_the_kernel_counts_the_bytes_that_the_suite_counts(layers):
    """At a fifth of the emulated speed; sparse with enough entries for control traffic not to matter."""
    done = emulate(layers, "--iterations", "3", "--stretch", "5", "--set", "method.density=0.25")
    assert done.returncode == 0, done.stderr
    found = summaries(layers)
    assert set(found) == {"dense", "slgs", "lags"}
    for method, one in found.items():
        expected = 2 * 3 / 4 * 4e6 if method == "dense" else 3 * 8 * 250_000
        assert one["counted_bytes"] == expected
        assert one["link_bytes"] == pytest.approx(expected, rel=0.05), method
    # Iterations take at least what the device computes and what links of 1 Gb/s need for these bytes.
    for one in found.values():
        assert one["iteration_s"] > one["bound_s"]
        assert one["iteration_s"] > 0.9 * 8 * one["counted_bytes"] / 1e9
        assert one["predicted_s"] == pytest.approx(one["iteration_s"], rel=0.5)
    assert found["slgs"]["hidden_share"] == 0
    (timeline,) = layers.parent.glob("emulated/**/lags/timeline.json")
    events = json.loads(timeline.read_text())["events"]
    assert {event["rank"] for event in events} == set(range(4))
    assert {event["phase"] for event in events} == {"forward", "backward", "select", "exchange"}

    again = emulate(layers, "--iterations", "3", "--stretch", "5", "--set", "method.density=0.25", "--dry-run")
    assert again.stdout.count("is done") == 3


def test_a_selection_in_earnest(layers):
    done = emulate(layers, "--method", "lags", "--iterations", "1", "--selection", "measured", "--json")
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout[done.stdout.index("[") :])
    assert one["selection"] == "measured" and one["name"] == "lags-measured" and one["iteration_s"] > 0.015


def start(layers: Path, *arguments: str) -> subprocess.Popen:
    """An emulation that takes minutes, on links so slow that their queues are full, once its iterations have begun."""
    slow = ("--network", "0.01", "--method", "dense", "--iterations", "100", *arguments)
    process = subprocess.Popen(
        command(layers, *slow), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(of_emulations()) < 5 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(8)  # ranks import, connect and begin
    assert process.poll() is None, process.communicate()
    return process


@pytest.mark.parametrize("victim", ["launcher", "switch", "host"])
def test_nothing_is_left_of_a_killed_emulation(layers, victim):
    before, links_before = namespaces(), links()
    process = start(layers)
    assert len(namespaces() - before) == 5 and links() == links_before
    (switch,) = [p for p in of_emulations() if "suite.emulate.session" in p.cmdline()]
    killed = {"launcher": process.pid, "switch": switch.pid, "host": switch.children()[2].pid}[victim]
    os.kill(killed, signal.SIGKILL)
    _, said = process.communicate(timeout=30)
    assert process.returncode == {"launcher": -signal.SIGKILL, "switch": 1, "host": 1}[victim]
    if victim == "host":
        assert "rank 2 was killed by SIGKILL and all ranks were ended" in said
    if victim == "switch":
        assert "the emulated network's process was killed by SIGKILL" in said
    assert gone(before) and links() == links_before


def test_an_interrupted_emulation_says_that_it_continues(layers):
    before = namespaces()
    process = start(layers)
    refused = emulate(layers, "--method", "lags")
    assert refused.returncode == 2 and "another emulation is under way" in refused.stderr
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 143 and "the same command continues from it" in said
    assert gone(before)

"""Ranks are started, told of signals and ended as one; what befalls runs is in tests/faults."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from helpers import ranks_of, require
from suite.config.experiment import WorldConfig
from suite.errors import Interrupted, SuiteError
from suite.world.check import horovod_build
from suite.world.launch import _watch, launch
from suite.world.ranks import Failure, rank_environments

TRAIN = {"epochs": 40, "batch_size": 2, "checkpoint_every": 20, "max_iterations": 240}


def start(config: Path, out: Path, *extra: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "suite", "train", str(config), "--out", str(out), *extra]
    return subprocess.Popen(command, cwd=out.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_checkpoint(out: Path) -> None:
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoint/step-*")):
        assert time.monotonic() < deadline, "no checkpoint appeared"
        time.sleep(0.05)


@pytest.fixture
def by_mpi() -> list[str]:
    """Options that put 4 workers on 2 processes that mpirun starts; the other ways are in tests/faults."""
    build = horovod_build()
    require("mpi", "mpi" in build.controllers, f"Horovod with MPI is not here ({build.reason or 'not built in'})")
    return ["--set", "world={workers: 4, processes: 2, transport: horovod, controller: mpi}"]


@pytest.mark.slow
def test_a_signal_reaches_all_ranks_and_the_run_continues_elsewhere(config_file, suite_command, tmp_path, by_mpi):
    """SIGTERM to the launcher: every rank agrees on the iteration to stop at; another placement continues."""
    config, out = config_file(train=TRAIN, world={"workers": 4}), tmp_path / "run"
    process = start(config, out, *by_mpi)
    wait_for_checkpoint(out)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and "the same command continues from it" in output
    again = suite_command("train", config, "--out", out)
    assert again.returncode == 0 and "continuing" in again.stdout


def test_ranks_that_do_not_listen_yet_are_stopped_not_failed(tmp_path):
    """A signal that comes while ranks still import what they need."""
    config = WorldConfig(workers=2, processes=2, transport="torch")
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    with pytest.raises(Interrupted, match="stopped by signal before it trained") as stopped:
        launch(config, [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path)
    assert stopped.value.exit_code == 128 + signal.SIGTERM


def test_ranks_are_asked_to_stop_until_they_can_have_got_it(tmp_path):
    """Slurm does not know a step at once whose srun has just been started."""

    class Late:
        asked = 0

        def running(self) -> bool:
            return self.asked < 3

        def failures(self) -> list[Failure]:
            return [] if self.running() else [Failure(0, "ended", 128 + signal.SIGTERM, tmp_path / "rank-0.log")]

        def ask_to_stop(self) -> bool:
            self.asked += 1
            return self.asked == 3

    ranks = Late()
    with pytest.raises(Interrupted):
        _watch(ranks, [signal.SIGTERM], tmp_path)
    assert ranks.asked == 3


@pytest.mark.slow
def test_killing_the_launcher_leaves_no_rank_behind(config_file, tmp_path, by_mpi):
    config, out = config_file(train=TRAIN, world={"workers": 4}), tmp_path / "run"
    process = start(config, out, *by_mpi)
    wait_for_checkpoint(out)
    assert len(ranks_of(out)) >= 2  # and mpirun, whose command line holds the rank's
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 10
    while ranks_of(out) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not ranks_of(out)


@pytest.mark.horovod
@pytest.mark.parametrize("own", [None, "60"])
def test_a_busy_machine_is_no_reason_for_horovod_to_give_up(monkeypatch, own: str | None):
    build = horovod_build()
    require("horovod", "gloo" in build.controllers, f"Horovod with Gloo is not here ({build.reason})")
    monkeypatch.delenv("HOROVOD_GLOO_TIMEOUT_SECONDS", raising=False)
    if own:
        monkeypatch.setenv("HOROVOD_GLOO_TIMEOUT_SECONDS", own)
    with rank_environments(WorldConfig(workers=2, processes=2, transport="horovod")) as environments:
        assert [rank["HOROVOD_GLOO_TIMEOUT_SECONDS"] for rank in environments] == [own or "300"] * 2


def test_the_first_error_is_shown(tmp_path):
    """One rank raises, the other would wait for ever."""
    program = "import os, time\nif os.environ['SUITE_RANK'] == '1': raise RuntimeError('the reason')\ntime.sleep(600)"
    began = time.monotonic()
    with pytest.raises(SuiteError, match=r"rank 1 ended with exit code 1(.|\n)*RuntimeError: the reason"):
        launch(WorldConfig(workers=2, processes=2, transport="torch"), [sys.executable, "-c", program], tmp_path)
    assert time.monotonic() - began < 30


def test_a_rank_that_ignores_requests_is_killed(tmp_path):
    program = (
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open(os.path.join(sys.argv[1], os.environ['SUITE_RANK']), 'w').write(str(os.getpid()))\n"
        "while len(os.listdir(sys.argv[1])) < 2: time.sleep(0.01)\n"
        "sys.exit(3) if os.environ['SUITE_RANK'] == '0' else time.sleep(600)"
    )
    folder = tmp_path / "pids"
    folder.mkdir()
    with pytest.raises(SuiteError, match="rank 0 ended with exit code 3"):
        launch(
            WorldConfig(workers=2, processes=2, transport="torch"),
            [sys.executable, "-c", program, str(folder)],
            tmp_path,
        )
    assert not psutil.pid_exists(int((folder / "1").read_text())) and os.path.exists(folder / "0")

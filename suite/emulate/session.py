"""Runs emulations: a process that becomes the switch, and in it the ranks, each a host.

`python -m suite.emulate.session SETTINGS` is that process. It is separate because a network namespace is for good.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

from suite.emulate.check import why_not
from suite.emulate.grid import Emulation
from suite.emulate.hosts import INTERFACE, become_switch, host_address
from suite.errors import ConfigError, SuiteError


def run(cells: Sequence[Emulation], root: Path, logs: Path) -> None:
    """Emulate cells that are not done yet, those with equally many hosts in one session; records go below `root`.

    Raises:
        ConfigError: this machine cannot, another emulation is under way, or the memory does not suffice.
        SuiteError: a host failed.
        SystemExit: with the session's exit code, when it was interrupted; finished cells are kept.
    """
    from suite.record.environment import describe_machine

    if reason := why_not(cells):
        raise ConfigError(f"no network can be emulated here: {reason}; `suite predict` needs none")
    # Seen by no other namespace, and gone with this process.
    with socket.socket(socket.AF_UNIX) as lock, tempfile.TemporaryDirectory(prefix="suite-emulate-") as folder:
        try:
            lock.bind("\0suite-emulate")
        except OSError as error:
            raise ConfigError(
                "another emulation is under way on this machine, and each would measure the other; wait for it"
            ) from error
        for workers, of in groupby(sorted(cells, key=lambda cell: cell.workers), key=lambda cell: cell.workers):
            settings = Path(folder) / f"{workers}.json"
            settings.write_text(json.dumps({
                "workers": workers, "root": str(root.resolve()), "logs": str((logs / str(workers)).resolve()),
                "environment": describe_machine(), "cells": [cell.model_dump(mode="json") for cell in of],
            }))  # fmt: skip
            _session(settings)


def _session(settings: Path) -> None:
    """Start the switch's process and wait for it; signals that this process gets go on to it."""
    command = [sys.executable, "-m", "suite.emulate.session", str(settings)]
    # A session of its own keeps a terminal's Ctrl-C away: it is passed on, once.
    process = subprocess.Popen(
        command, env=os.environ | {"SUITE_LAUNCHER": str(os.getpid())}, stdin=subprocess.DEVNULL, start_new_session=True
    )

    def forward(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code < 0:
        raise SuiteError(f"the emulated network's process was killed by {signal.Signals(-code).name}; start again")
    if code:
        raise SystemExit(code)  # it has said why


def _main(settings: dict[str, Any], path: str) -> None:
    address = become_switch()
    from suite.config.experiment import WorldConfig
    from suite.world.launch import launch
    from suite.world.ranks import RankNetwork, end_with_launcher

    # After the namespace, which forgets whose end this process asked to share.
    end_with_launcher()
    workers = settings["workers"]
    world = WorldConfig(workers=workers, processes=workers, transport="horovod")
    network = RankNetwork(INTERFACE, address, tuple(host_address(number) for number in range(workers)))
    launch(world, [sys.executable, "-m", "suite.emulate.rank", path], Path(settings["logs"]), network)


if __name__ == "__main__":
    try:
        _main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[1])
    except SuiteError as error:
        print(f"suite: {error}", file=sys.stderr)
        sys.exit(error.exit_code)

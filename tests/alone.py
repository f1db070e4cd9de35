"""Tests marked `alone` have the machine to themselves, whatever else pytest runs there at the same time."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    kind = fcntl.LOCK_EX if item.get_closest_marker("alone") else fcntl.LOCK_SH
    with ExitStack() as held:
        # Whoever waits for the machine holds the turnstile: others, one after the other, would never let go of it.
        with _locked("turnstile", fcntl.LOCK_EX):
            held.enter_context(_locked("machine", kind))
        return (yield)


@contextmanager
def _locked(name: str, kind: int) -> Iterator[None]:
    folder = Path(tempfile.gettempdir()) / f"suite-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    with open(folder / name, "a") as file:
        fcntl.flock(file, kind)
        yield

"""A run's folder: who may write in it, which configuration it belongs to, and whether it is done."""

import fcntl
import json
import math
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from suite.config import ExperimentConfig, validate_config
from suite.config.values import read_yaml
from suite.errors import ConfigError, SuiteError
from suite.record.atomic import write_json, write_text

# Settings that do not change what a run computes, and those that say how far it goes: a run may be made longer. All
# others must stay the same on resume.
_PLACEMENT = {
    "world.processes", "world.transport", "world.controller", "world.overlap", "train.checkpoint_every",
    "train.stall_limit",
}  # fmt: skip
_LENGTH = {"train.epochs", "train.max_iterations"}
_CLAIM_SECONDS = (
    0.5  # for which a claim tries again: somebody who asks whether a run is under way holds the lock a moment
)


class RunFolder:
    """The contract's files of one run."""

    def __init__(self, path: Path):
        self.path = path
        self.config = path / "config.yaml"
        self.environment = path / "environment.json"
        self.timeline = path / "timeline.json"
        self.costs = path / "costs.yaml"
        self.summary = path / "summary.json"
        self.failure = path / "failure.json"
        self.checkpoint = path / "checkpoint"
        self.parts = self.checkpoint / "records"
        self.logs = path / "logs"
        self.watch = self.logs / "watch"

    def read_summary(self) -> dict[str, Any] | None:
        """The summary of a complete run, None otherwise."""
        try:
            summary = json.loads(self.summary.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return summary if summary.get("complete") else None

    def read_hidden_share(self) -> float | None:
        """The traced iteration's share of hidden exchange; None for one process, or a run too short to be traced."""
        try:
            return json.loads(self.timeline.read_text())["hidden_share"]
        except FileNotFoundError:
            return None

    def read_failure(self) -> dict[str, Any] | None:
        """What ended the last attempt at this run; None when it is complete or nobody wrote it down."""
        try:
            return json.loads(self.failure.read_text())
        except (OSError, ValueError):
            return None

    def record_failure(self, error: BaseException, iteration: int | None = None) -> None:
        """Write failure.json: kind, sentence, iteration (None where unknown) and time of what ended the run.

        The first to tell counts: a rank knows its reason better than the process that finds the rank gone. A folder
        that cannot be written stays without, since whoever reads it then has the log.
        """
        if self.failure.exists():
            return
        if isinstance(error, SuiteError):
            kind, sentence = error.kind, str(error)
        else:
            kind = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            sentence = f"{type(error).__name__}: {error}".rstrip(": ")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            write_json(self.failure, {"kind": kind, "sentence": sentence, "iteration": iteration, "time": now})
        except OSError:
            pass

    def is_claimed(self) -> bool:
        """Whether a living process holds the folder; a lock ends with its process, however that ends."""
        try:
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def claim(self, config: ExperimentConfig, restart_if_changed: bool) -> bool:
        """Take the folder for this configuration and hold it until `release` or the end of the process.

        Returns:
            False when the folder already holds the complete run, True when there is work to do.

        Raises:
            ConfigError: the folder belongs to another configuration, or cannot be written.
            SuiteError: another process is training in it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._not_writable(error.strerror) from error
        self._take_lock()
        if self.config.exists():
            changed, blocking = self._changes(config, restart_if_changed)
            if blocking:
                self._clear()
            elif changed & _LENGTH:
                self.summary.unlink(missing_ok=True)  # it tells of a run of another length
            elif self.read_summary():
                return False
        for stale in (self.failure, *self.path.glob(".*.part"), *self.parts.glob(".*.part")):  # of killed processes
            stale.unlink(missing_ok=True)
        write_text(self.config, yaml.safe_dump(config.to_dict(), sort_keys=False))
        return True

    def check(self, config: ExperimentConfig, restart_if_changed: bool) -> None:
        """Refuse what `claim` would refuse for good, and write nothing."""
        place = self.path
        while not os.path.lexists(place) and place != place.parent:
            place = place.parent
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            reason = "permission denied" if place.is_dir() else f"{place} is not a folder"
            raise self._not_writable(reason)
        if self.config.exists():
            self._changes(config, restart_if_changed)

    def _not_writable(self, reason: str) -> ConfigError:
        return ConfigError(f"the run folder {self.path} cannot be written ({reason}); choose one with --out")

    def _changes(self, config: ExperimentConfig, restart_if_changed: bool) -> tuple[set[str], set[str]]:
        """Keys that differ from the run in the folder, and those of them that forbid to continue it."""
        changed = differences(resolved(read_yaml(self.config)), config.to_dict())
        blocking = {key: pair for key, pair in changed.items() if _blocks(key, *pair)}
        if blocking and not restart_if_changed:
            key, (old, new) = next(iter(blocking.items()))
            raise ConfigError(
                f"{self.path} holds a run with {key} = {old} and this one has {new}; "
                "choose another folder with --out, or pass --restart-if-changed to begin anew here"
            )
        return set(changed), set(blocking)

    def release(self) -> None:
        """Let others train here."""
        os.close(self._lock)

    def _take_lock(self) -> None:
        deadline = time.monotonic() + _CLAIM_SECONDS
        while True:
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise SuiteError(
                        f"another process is training in {self.path}; wait for it or choose another --out"
                    ) from error
                time.sleep(_CLAIM_SECONDS / 10)

    def _clear(self) -> None:
        for path in self.path.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".lock":
                path.unlink()


def resolved(stored: dict[str, Any]) -> dict[str, Any]:
    """A stored configuration with the settings that have been invented since: their defaults are what it ran with."""
    try:
        return validate_config(stored).to_dict()
    except ConfigError:
        return stored  # of a version too different to be read; every difference counts


def _blocks(key: str, old: Any, new: Any) -> bool:
    """Whether a folder with the old value of a setting cannot continue with the new one."""
    if key in _LENGTH:
        return (new or math.inf) < (old or math.inf)  # no maximum is the largest
    return key not in _PLACEMENT


def differences(old: Any, new: Any, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Dotted keys whose values differ between two nested mappings, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        out: dict[str, tuple[Any, Any]] = {}
        for key in old | new:
            out |= differences(old.get(key), new.get(key), f"{prefix}.{key}" if prefix else key)
        return out
    return {} if old == new else {prefix: (old, new)}

"""Where real data lie, and the decoded copies that are made of them once.

The folder of data is not part of a configuration, so that one configuration gives one result on every machine: it comes
from the variable SUITE_DATA, which `suite train --data-root` and `snakemake --config data_root=DIR` set. What was trained
on is in the run's record as a hash of all samples.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from suite.errors import ConfigError

VARIABLE = "SUITE_DATA"
_MANIFEST = "manifest.json"


def data_root() -> Path | None:
    """The folder of data, None where nobody named one; refuses one that is not there."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise ConfigError(f"there is no folder of data {named}; correct --data-root or the variable {VARIABLE}")
    return Path(named)


def cache_root() -> Path:
    """Where decoded copies and downloads are kept: SUITE_CACHE, else lags-suite in the user's cache folder."""
    named = os.environ.get("SUITE_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lags-suite"


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_hash(folder: Path) -> str:
    """SHA-256 of names, sizes and times of all files below a folder: changes when a file does, without reading it."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        stat = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def cached(kind: str, source: str, build: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays decoded from `source`, built once and read back ever after.

    Processes that ask at the same time wait for the one that builds. A copy whose bytes are not those that were
    written is thrown away and built again. Arrays read back are mapped into memory, so that ranks on one machine share
    them; writing to one changes this process's copy alone.

    Args:
        kind: of the data, such as "cifar10".
        source: a hash that identifies what is decoded.
        build: decodes; its errors leave no copy behind.
    """
    folder = cache_root() / f"{kind}-{source[:16]}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_suffix(".lock")):
            arrays = _read(folder)
            if arrays is None:
                shutil.rmtree(folder, ignore_errors=True)
                _write(folder, build())
                arrays = _read(folder)
    except OSError as error:
        raise ConfigError(
            f"no decoded copy of {kind} could be kept in {cache_root()} ({error.strerror or error}); make room there, or "
            "name another folder in the variable SUITE_CACHE"
        ) from error
    if arrays is None:
        raise ConfigError(f"the decoded copy of {kind} in {folder} does not read back as written; check that disk")
    return arrays


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: two builders do the work twice, and the later rename wins or is dropped
        yield


def _write(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """All arrays and then their hashes into a folder aside, which takes its name as a whole."""
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(aside / f"{name}.npy", np.ascontiguousarray(array))
        hashes = {name: file_hash(aside / f"{name}.npy") for name in arrays}
        (aside / _MANIFEST).write_text(json.dumps(hashes))
        try:
            os.rename(aside, folder)
        except OSError:
            if not folder.is_dir():  # somebody else's copy, on a file system without locks, is as good
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _read(folder: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a copy, None where there is none or a byte of it has changed."""
    try:
        hashes = json.loads((folder / _MANIFEST).read_text())
        if any(file_hash(folder / f"{name}.npy") != sha for name, sha in hashes.items()):
            return None
        return {name: np.load(folder / f"{name}.npy", mmap_mode="c") for name in hashes}
    except (FileNotFoundError, ValueError):
        return None

"""Where real data lie, and the decoded copies that are made of them once.

The folder of data is not part of a configuration, so that one configuration gives one result on every machine: it
comes from the variable SUITE_DATA, which `suite train --data-root` and `snakemake --config data_root=DIR` set. What was
trained on is in the run's record as a hash of all samples.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from suite.errors import ConfigError

VARIABLE = "SUITE_DATA"
_MANIFEST = "manifest.json"

Arrays = dict[str, np.ndarray]
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Source:
    """Data found on disk.

    Attributes:
        where: the file or folder that holds them.
        identity: from there to a hash that changes when the data do.
        decode: from there to all of them; raises ConfigError where something is damaged.
    """

    where: Path
    identity: Callable[[Path], str]
    decode: Callable[[Path], Arrays]


def data_root() -> Path | None:
    """The folder of data, None where nobody named one; refuses one that is not there."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise ConfigError(f"there is no folder of data {named}; correct --data-root or the variable {VARIABLE}")
    return Path(named)


def name_data_root(folder: Path) -> None:
    """Make `folder` the folder of data of this process and of those it starts; refuses one that is not there."""
    os.environ[VARIABLE] = str(folder.absolute())
    data_root()


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
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            stat = os.stat(os.path.join(parent, name))
            below = os.path.relpath(parent, folder)
            digest.update(f"{below}/{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@contextmanager
def opened_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """A zip to read members of; whatever is wrong with it is one sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    # zlib's error is of a member whose bytes have changed, the last two are of encryption and unknown compression.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise ConfigError(f"{path} is damaged ({error}); copy it anew") from error


def told(items: Sequence[_Item], what: str) -> Iterable[_Item]:
    """The items, while the person who waits sees a bar; without a terminal one line says `what`.

    On standard error: what a command prints on standard output stays its own.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if console.is_terminal:
        return track(items, what, console=console, transient=True)
    console.print(f"{what}, once", soft_wrap=True, highlight=False)
    return items


def cached(kind: str, source: Source) -> Arrays:
    """The arrays decoded from a source, built once and read back ever after.

    Processes that ask at the same time wait for the one that builds. A copy whose bytes are not those that were
    written is thrown away and built again. Arrays read back are mapped into memory, so that ranks on one machine share
    them; writing to one changes this process's copy alone.

    Args:
        kind: of the data, such as "cifar10".
        source: is decoded where there is no intact copy; its errors leave none behind.
    """
    folder = cache_root() / f"{kind}-{source.identity(source.where)[:16]}"
    arrays = _read(folder)
    if arrays is None:
        with locked(folder.with_suffix(".lock")) as alone:
            arrays = _read(folder)  # somebody else may have built it meanwhile
            if arrays is None:
                for leftover in folder.parent.glob(f".{folder.name}.*") if alone else ():
                    shutil.rmtree(leftover, ignore_errors=True)  # of a builder that was killed
                _write(folder, source.decode(source.where))
                arrays = _read(folder)
    if arrays is None:
        raise ConfigError(f"the decoded copy of {kind} in {folder} does not read back as written; check that disk")
    return arrays


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock file in the cache; whether nobody else can have it is False on a file system without locks.

    There, two builders do the work twice, and the later one finds the other's copy in place.
    """
    with _keeping():
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            alone = True
        except OSError:
            alone = False
        yield alone


@contextmanager
def _keeping() -> Iterator[None]:
    """Say what a cache that cannot be read or written means."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"decoded data could not be kept in {cache_root()} ({error.strerror or error}); make room there, or name "
            "another folder in the variable SUITE_CACHE"
        ) from error


def _write(folder: Path, arrays: Arrays) -> None:
    """All arrays and then their hashes into a folder aside, which takes its name as a whole."""
    with _keeping():
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            for name, array in arrays.items():
                np.save(aside / f"{name}.npy", np.ascontiguousarray(array))
            hashes = {name: file_hash(aside / f"{name}.npy") for name in arrays}
            (aside / _MANIFEST).write_text(json.dumps(hashes))
            try:
                os.rename(aside, folder)
            except OSError:
                # What is there is a damaged copy, or an intact one of somebody else's, where nothing can be locked.
                if _read(folder) is None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.rename(aside, folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _read(folder: Path) -> Arrays | None:
    """The arrays of a copy, None where there is none or a byte of it has changed."""
    with _keeping():
        try:
            hashes = json.loads((folder / _MANIFEST).read_text())
            if any(file_hash(folder / f"{name}.npy") != sha for name, sha in hashes.items()):
                return None
            return {name: np.load(folder / f"{name}.npy", mmap_mode="c") for name in hashes}
        except (FileNotFoundError, ValueError):
            return None

"""Decoded copies: built once whoever asks, noticed when damaged, gone when interrupted."""

import errno
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from trees import CIFAR_SIZES, cifar_tree

from suite.config.experiment import Cifar10Config
from suite.data import files
from suite.data.cifar10 import load_cifar10
from suite.data.files import Source, cached, tree_hash
from suite.errors import ConfigError

NUMBERS = np.arange(1000, dtype=np.int64)


def counting(folder: Path) -> Source:
    """A source that leaves a file for every time it is decoded."""
    folder.mkdir(exist_ok=True)

    def decode(where: Path) -> dict[str, np.ndarray]:
        (folder / f"{os.getpid()}-{len(list(folder.iterdir()))}").touch()
        return {"numbers": NUMBERS, "halves": NUMBERS / 2}

    return Source(folder, lambda where: "0123456789abcdef0123", decode)


def copy_in(cache: Path) -> Path:
    (found,) = [path for path in cache.iterdir() if path.is_dir()]
    return found


def test_decoded_once_and_read_back_mapped(cache, tmp_path):
    source = counting(tmp_path / "builds")
    for _ in range(2):
        arrays = cached("kind", source)
        assert np.array_equal(arrays["numbers"], NUMBERS) and isinstance(arrays["halves"], np.memmap)
    assert len(list(source.where.iterdir())) == 1 and copy_in(cache).name == "kind-0123456789abcdef"


def test_writing_to_an_array_changes_no_copy(tmp_path):
    source = counting(tmp_path / "builds")
    cached("kind", source)["numbers"][0] = 7
    assert cached("kind", source)["numbers"][0] == 0


@pytest.mark.parametrize("name", ["numbers.npy", "halves.npy", "manifest.json"])
@pytest.mark.parametrize("place", [0, -20])
def test_a_flipped_byte_is_noticed(cache, tmp_path, name: str, place: int):
    source = counting(tmp_path / "builds")
    cached("kind", source)
    damaged = copy_in(cache) / name
    content = bytearray(damaged.read_bytes())
    content[place] ^= 0x10
    damaged.write_bytes(content)
    assert np.array_equal(cached("kind", source)["halves"], NUMBERS / 2)
    assert len(list(source.where.iterdir())) == 2


def test_a_missing_file_is_noticed(cache, tmp_path):
    source = counting(tmp_path / "builds")
    cached("kind", source)
    (copy_in(cache) / "halves.npy").unlink()
    cached("kind", source)
    assert len(list(source.where.iterdir())) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, ConfigError("no image"), MemoryError])
def test_an_interrupted_build_leaves_nothing(cache, error):
    def decode(where: Path):
        raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        cached("kind", Source(Path("."), lambda where: "0" * 20, decode))
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_an_interrupted_write_leaves_nothing(cache, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(ConfigError, match="No space left on device.*make room there.*SUITE_CACHE"):
        cached("kind", counting(tmp_path / "builds"))
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_what_a_killed_builder_left_is_swept_up(cache, tmp_path, monkeypatch):
    source = counting(tmp_path / "builds")

    def build_and_die() -> None:
        monkeypatch.setattr(files, "file_hash", lambda path: os._exit(3))
        cached("kind", source)

    process = multiprocessing.get_context("fork").Process(target=build_and_die)
    process.start()
    process.join()
    assert process.exitcode == 3 and copy_in(cache).name.startswith(".kind-")
    cached("kind", source)
    assert copy_in(cache).name == "kind-0123456789abcdef"


def test_a_cache_that_cannot_be_is_one_sentence(cache, tmp_path):
    cache.write_text("a file")
    with pytest.raises(ConfigError, match="decoded data could not be kept in .*; make room there"):
        cached("kind", counting(tmp_path / "builds"))


def test_the_variable_comes_before_the_users_cache_folder(cache, monkeypatch, tmp_path):
    assert files.cache_root() == cache
    monkeypatch.delenv("SUITE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_root() == tmp_path / "lags-suite"


def test_the_hash_of_a_tree_sees_names_sizes_and_times(tmp_path):
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "b"
    seen = set()
    for change in (
        lambda: file.write_text("1"),
        lambda: file.write_text("22"),
        lambda: os.utime(file, (1, 1)),
        lambda: file.rename(tmp_path / "a" / "c"),
    ):
        change()
        seen.add(tree_hash(tmp_path))
        assert tree_hash(tmp_path) in seen
    assert len(seen) == 4


@pytest.mark.parametrize("terminal", [False, True])
def test_the_person_who_waits_is_told(monkeypatch, capsys, terminal: bool):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert list(files.told([1, 2, 3], "decoding 3 images")) == [1, 2, 3]
    out, err = capsys.readouterr()
    assert not out and (terminal or err == "decoding 3 images, once\n")


# -- many processes at once --------------------------------------------------------------------------------------------


def together(work, processes: int = 16) -> list:
    """What `work` returns in each of so many processes that begin at the same moment."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(processes), context.SimpleQueue()

    def begin() -> None:
        barrier.wait()
        try:
            results.put(work())
        except BaseException as error:
            results.put(repr(error))

    started = [context.Process(target=begin) for _ in range(processes)]
    for process in started:
        process.start()
    found = [results.get() for _ in started]
    for process in started:
        process.join()
    return found


def test_sixteen_processes_build_one_copy(cache, tmp_path):
    source = counting(tmp_path / "builds")
    found = together(lambda: int(cached("kind", source)["numbers"].sum()))
    assert found == 16 * [int(NUMBERS.sum())] and len(list(source.where.iterdir())) == 1
    assert sorted(path.name for path in cache.iterdir()) == ["kind-0123456789abcdef", "kind-0123456789abcdef.lock"]


def test_sixteen_processes_build_one_copy_where_nothing_can_be_locked(cache, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", refuse)
    source = counting(tmp_path / "builds")
    assert together(lambda: int(cached("kind", source)["numbers"].sum())) == 16 * [int(NUMBERS.sum())]
    assert copy_in(cache).name == "kind-0123456789abcdef"


def test_sixteen_processes_start_cold_on_one_tree(cache, data, monkeypatch):
    monkeypatch.setattr("suite.data.cifar10.SIZES", CIFAR_SIZES)
    cifar_tree(data)
    found = together(lambda: load_cifar10(Cifar10Config()).sha256)
    assert len(set(found)) == 1 and found[0] == load_cifar10(Cifar10Config()).sha256
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


@pytest.mark.slow
def test_sixteen_processes_start_cold_on_the_real_images(cache, real_data, monkeypatch):
    monkeypatch.setenv("SUITE_CACHE", str(cache))
    found = together(lambda: load_cifar10(Cifar10Config()).sha256)
    assert len(set(found)) == 1 and len(found[0]) == 64
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1

"""A cache of its own for every test, and the real data where SUITE_DATA names them."""

import os
from pathlib import Path

import pytest

REAL_DATA = os.environ.get("SUITE_DATA")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """An empty cache; no folder of data is named unless the test does it."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SUITE_CACHE", str(folder))
    monkeypatch.delenv("SUITE_DATA", raising=False)
    return folder


@pytest.fixture
def data(monkeypatch, tmp_path) -> Path:
    """An empty folder that SUITE_DATA names."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("SUITE_DATA", str(folder))
    return folder


@pytest.fixture(scope="module")
def real_cache(tmp_path_factory) -> Path:
    """Where the real data are decoded, once for all tests of a file."""
    if REAL_DATA is None:
        pytest.skip("SUITE_DATA names no folder with the real CIFAR-10 and Penn Treebank")
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def real_data(monkeypatch, cache, real_cache) -> Path:
    """The folder with the real data, decoded once for the tests of a file."""
    monkeypatch.setenv("SUITE_DATA", str(REAL_DATA))
    monkeypatch.setenv("SUITE_CACHE", str(real_cache))
    return Path(str(REAL_DATA))

"""The rooms import only what docs/architecture.md allows, and no file outgrows a reader."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import ROOT

MAY_IMPORT = {
    "config": {"methods"},  # each method brings its settings: looked up late, see suite/config/experiment.py
    "timeline": {"config"},
    "plan": {"config", "timeline"},
    "compress": {"plan"},
    "world": {"config"},
    "methods": {"config", "plan", "compress"},
    "data": {"config"},
    "models": {"config", "data"},
    "measure": {"config", "plan", "compress", "world", "record"},
    "record": {"config"},
    "claims": {"config", "timeline", "record", "speed"},
    "report": {"config", "record", "speed"},
    "train": {"config", "timeline", "plan", "compress", "world", "methods", "models", "data", "measure", "record"},
    "speed": {"config", "timeline", "plan", "methods", "data", "models", "measure", "record"},
    "emulate": {"config", "timeline", "plan", "compress", "world", "methods", "measure", "train", "record", "speed"},
    "bench": {
        "config",
        "plan",
        "compress",
        "world",
        "methods",
        "models",
        "data",
        "measure",
        "record",
        "train",
        "speed",
    },
}


def imported_rooms(path: Path) -> Iterator[str]:
    """Rooms of `suite` a file imports from, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("suite."):
            yield node.module.split(".")[1]


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room: str):
    for path in (ROOT / "suite" / room).glob("*.py"):
        assert set(imported_rooms(path)) <= MAY_IMPORT[room] | {room, "errors", "words"}, path


def test_every_room_is_listed():
    rooms = {path.parent.name for path in (ROOT / "suite").glob("*/__init__.py")}
    assert rooms == set(MAY_IMPORT) | {"cli"}


def test_no_file_is_long():
    for part in ("suite", "plots", "cluster", "tests"):
        for path in (ROOT / part).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= 400, path

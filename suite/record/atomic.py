"""Files that are either whole or not there: written aside, flushed, renamed."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`; on success it takes its place, on failure nothing is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        with open(aside, "rb") as file:
            os.fsync(file.fileno())
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinity are refused because JSON has no such numbers."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")

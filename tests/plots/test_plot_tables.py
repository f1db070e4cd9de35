"""Tables that cannot be used are refused in one sentence."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from plots.tables import TableError, Tables

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def results(drawn, tmp_path):
    shutil.copytree(drawn / "tables", tmp_path / "tables")
    return tmp_path


def refuse(results) -> str:
    with pytest.raises(TableError) as error:
        Tables.read(results)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_missing_table(results):
    (results / "tables" / "epochs.csv").unlink()
    assert "there is no table" in refuse(results) and "epochs.csv" in refuse(results)


@pytest.mark.parametrize("content", [b"", b'a,b\n1,2,3\n"', b"\xff\xfe\x00\x01"], ids=["empty", "ragged", "binary"])
def test_corrupt_table(results, content):
    (results / "tables" / "runs.csv").write_bytes(content)
    assert "runs.csv is not a readable CSV table" in refuse(results)


def test_missing_column(results):
    path = results / "tables" / "phases.csv"
    pd.read_csv(path).drop(columns="median_s").to_csv(path, index=False)
    assert "phases.csv lacks the column median_s" in refuse(results)


def test_text_among_numbers(results):
    path = results / "tables" / "epochs.csv"
    table = pd.read_csv(path, dtype={"value": str})
    table.loc[3, "value"] = "good"
    table.to_csv(path, index=False)
    assert "epochs.csv has text in its number column value" in refuse(results)


def test_command_ends_with_one_line_and_code_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "plots", "--results", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no table") and done.stderr.count("\n") == 1


def test_plots_need_little_of_the_library():
    allowed = ("suite.record", "suite.timeline", "suite.speed.paper", "suite.speed.published", "suite.words")
    for path in (ROOT / "plots").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else ([node.module] if isinstance(node, ast.ImportFrom) else [])
            )
            used = [name for name in names if name.split(".")[0] == "suite"]
            assert all(name.startswith(allowed) for name in used), path


def test_run_times_may_be_missing(results):
    (results / "tables" / "run_times.csv").unlink()
    assert Tables.read(results).run_times.empty and Tables.read(results).refused.empty

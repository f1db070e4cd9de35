"""The report and the figures say which cells are not finished."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from helpers import ROOT
from plots.gallery import draw_all
from suite.report import build_report
from suite.report.grid import read_grid


@pytest.fixture
def results(built, tmp_path) -> Path:
    """The synthetic profile with a table of states in which two cells are not done."""
    folder = Path(shutil.copytree(built, tmp_path / "laptop"))
    runs = pd.read_csv(folder / "tables" / "runs.csv")
    states = runs[["run", "experiment", "title", "method", "seed"]].assign(
        state="done", iteration=pd.NA, reason=None, log=None, last_lines=None
    )
    states.loc[3, ["state", "iteration", "reason", "log", "last_lines"]] = [
        "diverged", 17, "gradients <were> not finite", "logs/train/a.log", "suite: gradients <were> not finite"
    ]  # fmt: skip
    states.loc[4, "state"] = "not run"
    states.to_csv(folder / "tables" / "states.csv", index=False)
    return folder


def test_every_cell_has_its_place(results):
    states = pd.read_csv(results / "tables" / "states.csv")
    grid = read_grid(results)
    assert grid["summary"] == f"{len(states) - 2} of {len(states)} cells are done, 1 diverged and 1 not run."
    found = [state for row in grid["rows"] for state in row["states"] if state is not None]
    assert sorted(found) == sorted(states.state)
    assert [cell["run"] for cell in grid["open"]] == list(states.run[3:5])


def test_the_page_names_open_cells_and_why(results):
    page = build_report(results, ROOT / "replications").read_text(encoding="utf-8")
    run = pd.read_csv(results / "tables" / "states.csv").run[3]
    assert f"<code>{run}</code>: diverged at iteration 17 – gradients &lt;were&gt; not finite" in page
    assert "end of <code>logs/train/a.log</code>" in page and page.count("✗ diverged") == 1


def test_without_states_it_is_said(built):
    assert read_grid(built) is None and "there is no tables/states.csv" in (built / "report.html").read_text()


def test_captions_of_runs_name_open_cells(results):
    run = pd.read_csv(results / "tables" / "states.csv").run[3].partition("/")[2]
    captions = {entry["name"]: entry.get("caption", "") for entry in draw_all(results)}
    said = {name for name, caption in captions.items() if f"Not finished, and so in no figure: {run} (div" in caption}
    assert {"curves", "phases", "delta_kinds"} <= said
    assert not said & {"iteration_times", "bandwidth", "emulated_timeline"}
    assert json.loads((results / "figures" / "captions.json").read_text())[0]["caption"] == captions["curves"]

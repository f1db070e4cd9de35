"""Every cell has a state, and only a complete run is done."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from helpers import tiny_settings
from suite.config import validate_config
from suite.config.profiles import Cell, profile_cells
from suite.errors import Diverged, Interrupted, Stalled, SuiteError
from suite.record import RunFolder
from suite.record.states import STATES, cell_states, write_states
from training import trainer


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    """A profile of ten cells that nobody has run."""
    base = tiny_settings() | {"train": {"epochs": 1, "max_iterations": 3, "batch_size": 2}}
    spec = {"title": "Text", "base": base, "methods": {"lags": {}}, "seeds": list(range(10))}
    (tmp_path / "replications" / "x").mkdir(parents=True)
    (tmp_path / "replications" / "x" / "experiments.yaml").write_text(
        yaml.safe_dump({"profiles": {"little": {"text": spec}}})
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "little"


def folder_of(results: Path, cell: Cell) -> RunFolder:
    return RunFolder(results / "runs" / cell.folder)


def test_states(results):
    cells = profile_cells("little")
    assert {state.state for state in cell_states(results)} == {"not run"}
    trainer(validate_config(cells[0].config), results / "runs" / cells[0].folder).run()
    errors = [SuiteError("broke"), Diverged("not finite"), Stalled("nothing moved"), Interrupted("by signal", 15)]
    for cell, error in zip(cells[1:], [*errors, KeyboardInterrupt(), ValueError("odd")], strict=False):
        folder_of(results, cell).path.mkdir(parents=True)
        folder_of(results, cell).record_failure(error, 7)
    held = folder_of(results, cells[7])
    held.claim(validate_config(cells[7].config), restart_if_changed=False)
    killed = folder_of(results, cells[8])
    killed.claim(validate_config(cells[8].config), restart_if_changed=False)
    killed.release()
    (killed.checkpoint / "step-0000000002").mkdir(parents=True)
    found = {state.seed: state for state in cell_states(results)}
    held.release()
    assert [found[seed].state for seed in range(10)] == [
        "done", "failed", "diverged", "timed out", "stopped", "stopped", "failed", "running", "stopped", "not run",
    ]  # fmt: skip
    assert {state.state for state in found.values()} == set(STATES)
    assert found[2].iteration == 7 and found[2].reason == "not finite" and found[6].reason == "ValueError: odd"
    assert found[8].iteration == 2 and "without a word" in found[8].reason


def test_a_damaged_or_incomplete_summary_is_not_done(results):
    folder = folder_of(results, profile_cells("little")[0])
    folder.path.mkdir(parents=True)
    for text in ("", "{", json.dumps({"complete": False}), json.dumps({"final": 1.0})):
        folder.summary.write_text(text)
        assert cell_states(results)[0].state == "not run"


def test_a_refusal_is_read_from_the_log(results):
    log = results / "logs" / "train" / "text-lags-3.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {i}\n" for i in range(5000)) + "suite: there is no folder of data /x; name one\n")
    state = cell_states(results)[3]
    assert (state.state, state.reason) == ("failed", "there is no folder of data /x; name one")
    assert len(state.last_lines.splitlines()) == 15 and state.log == "logs/train/text-lags-3.log"
    log.write_text(f"suite: stopped by signal at iteration 2 of 9; {Interrupted.promise}\n")
    assert cell_states(results)[3].state == "stopped"


def test_the_first_to_tell_counts_and_the_next_attempt_forgets(results):
    cell = profile_cells("little")[0]
    folder = folder_of(results, cell)
    folder.path.mkdir(parents=True)
    folder.record_failure(Diverged("the reason"), 3)
    folder.record_failure(SuiteError("rank 0 ended"), None)
    assert folder.read_failure() | {"time": ""} == {
        "kind": "diverged", "sentence": "the reason", "iteration": 3, "time": "",
    }  # fmt: skip
    folder.claim(validate_config(cell.config), restart_if_changed=False)
    folder.release()
    assert folder.read_failure() is None


def test_the_table_has_a_row_a_cell(results):
    folder = folder_of(results, profile_cells("little")[1])
    folder.path.mkdir(parents=True)
    folder.record_failure(Diverged("a sentence, with a comma\nand a second line"), 3)
    table = pd.read_csv(write_states(results))
    assert len(table) == 10 and table["reason"][1] == "a sentence, with a comma\nand a second line"
    assert table["iteration"].tolist()[1] == 3

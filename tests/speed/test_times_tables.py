"""`suite times`: tables of predictions, of where they cross, and of what was emulated."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from helpers import ROOT
from suite.cli.app import app
from suite.errors import ConfigError, SuiteError
from suite.record.atomic import write_json
from suite.speed.emulated import EMULATED, TIMELINE, emulated_tables, emulations
from suite.speed.networks import link_at
from suite.speed.paper import PLANS
from suite.speed.predictions import TITLES, predictions
from suite.speed.subject import read_subject
from suite.speed.tables import published_subjects, read_copies, write_tables

MODELS = ["VGG-16", "ResNet-50", "Inception-v4", "LSTM-PTB"]


def emulate(results: Path, profile: str, method: str = "lags", network: str = "1gbe", name: str = "", **facts) -> Path:
    """A made-up emulation of ResNet-50 by 16 workers: three iterations around 0.35 s."""
    folder = results / profile / "emulated" / network / "16" / "resnet-50" / (name or method)
    summary = {
        "complete": True, "model": "ResNet-50", "method": method, "network": network, "workers": 16,
        "density": None if method == "dense" else 0.001,
        "selection": "published", "stretch": 10.0, "bound_s": 0.3421, "predicted_s": 0.3422, "iteration_s": 0.35,
        "cpu_busy": 0.5,
    }  # fmt: skip
    write_json(folder / "summary.json", summary | facts)
    (folder / "iterations.csv").write_text("iteration,iteration_s,busy\n1,0.34,0.4\n2,0.36,0.5\n3,0.35,0.6\n")
    events = [
        {"rank": rank, "phase": phase, "label": label, "start": start, "end": end}
        for rank in (0, 1)
        for phase, label, start, end in (
            ("forward", "", 0, 0.1),
            ("backward", "b", 0.1, 0.2),
            ("exchange", "b", 0.2, 0.35),
        )
    ]
    predicted = [
        {"phase": phase, "label": "b .. a", "start": start, "end": end}
        for phase, start, end in (("backward", 0.0, 0.2), ("select", 0.2, 0.3))
    ]
    write_json(folder / "timeline.json", {"events": events, "predicted": predicted})
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """What the command writes for the smoke profile, two of whose cells were emulated here or for the reference."""
    results = tmp_path_factory.mktemp("results")
    emulate(results, "smoke")
    emulate(results, "reference")
    emulate(results, "reference", "slgs", iteration_s=0.41)
    emulate(results, "reference", "dense", complete=False)
    emulate(results, "reference", "slgs", network="10gbe", name="slgs-ours", selection="ours")
    emulate(results, "reference", "lags", name="lags-ours", selection="ours")
    write_json(results / "smoke" / "tables" / "selection.json", {"fused_ratio_to_copy": 2.0})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        said = CliRunner().invoke(app, ["times", "smoke", "--results", str(results)])
    assert said.exit_code == 0 and said.stdout.count(".csv") == 6, said.output
    return {path.stem: pd.read_csv(path) for path in (results / "smoke" / "tables").glob("*.csv")}


def test_the_studies_are_complete(tables):
    rows = tables["predicted"]
    counts = rows.groupby("study").size().to_dict()
    both = len(MODELS) * 2
    assert counts == {"times": both * 5 * len(TITLES), "sweep": both * 6 * 5 * 5, "scaling": both * 2 * 10 * 5}
    assert (
        list(rows.columns)
        == (
            "study model network bandwidth workers selection plan method density messages bytes forward_s backward_s "
            "select_s exchange_s exposed_s hidden_share iteration_s"
        ).split()
    )
    assert list(rows.model.unique()) == MODELS and set(rows.method) == set(PLANS)
    assert not rows.isna().any().any() and rows.workers.max() == 1024
    keys = ["study", "model", "network", "bandwidth", "workers", "selection", "plan"]
    assert not rows.duplicated(keys).any()


def test_a_row_is_the_prediction_it_names(tables, monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = tables["predicted"]
    (row,) = rows[
        (rows.study == "sweep") & (rows.model == "LSTM-PTB") & (rows.bandwidth == 2.5) & (rows.workers == 32)
        & (rows.selection == "published") & (rows.plan == "LAGS, merged")
    ].itertuples()  # fmt: skip
    (found,) = predictions(read_subject("LSTM-PTB"), link_at(2.5, 32), [PLANS["lags"]])
    assert row.iteration_s == pytest.approx(found.timeline.iteration, rel=1e-5)
    assert (row.messages, row.density) == (len(found.plan.messages), 0.004)


def test_our_selection_is_predicted_beside_the_published_one(tables):
    rows = tables["predicted"].query("study == 'times' and model == 'ResNet-50' and network == '10gbe'")
    seconds = rows.set_index(["selection", "plan"]).select_s
    assert seconds["ours", "SLGS"] == pytest.approx(2 * 8 * 25_557_032 / 440e9, rel=1e-5)
    assert seconds["published", "SLGS"] == 0.1376 and seconds["published", "LAGS, merged"] == 0.1321


def test_at_a_crossing_the_ratio_is_what_it_says(tables, monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = tables["crossings"]
    assert len(rows) == len(MODELS) * 2 * 2 * 4 and set(rows.ratio) == {1.0, 1.3, 2.86, 8.52}
    assert (rows.lowest_ratio < rows.highest_ratio).all()
    found = rows[(rows.model == "ResNet-50") & rows.bandwidth.notna() & (rows.selection == "published")]
    assert len(found) == 8
    for row in found.itertuples():
        dense, lags = predictions(
            read_subject("ResNet-50"), link_at(row.bandwidth, 16), [row.plan_against, PLANS["lags"]]
        )
        assert dense.timeline.iteration / lags.timeline.iteration == pytest.approx(row.ratio, rel=2e-3)
    never = rows[rows.bandwidth.isna()]
    assert ((never.ratio < never.lowest_ratio) | (never.ratio > never.highest_ratio)).all()


def test_published_predicted_and_emulated_side_by_side(tables):
    rows = tables["iteration_times"]
    assert (
        len(rows) == 24
        and list(rows.columns[:7]) == ("model method network workers published_s predicted_s emulated_s").split()
    )
    cells = rows.set_index(["model", "method", "network"])
    lags = cells.loc["ResNet-50", "lags", "1gbe"]
    assert (lags.published_s, lags.emulated_s, lags.iterations) == (0.507, 0.35, 3)
    assert (lags.emulated_low_s, lags.emulated_high_s) == pytest.approx((0.34, 0.36))
    assert (lags.emulated_in, lags.run) == ("smoke", "results/smoke/emulated/1gbe/16/resnet-50/lags")
    assert lags.bound_s == pytest.approx(0.09 + 0.12 + 0.1321, rel=1e-5) and lags.bound_s <= lags.predicted_s
    assert cells.loc["ResNet-50", "slgs", "1gbe"].emulated_in == "reference"
    assert cells.loc["ResNet-50", "dense", "1gbe"].published_s == 1.45
    assert math.isnan(cells.loc["ResNet-50", "dense", "1gbe"].emulated_s), "an unfinished emulation counts for nothing"
    assert math.isnan(cells.loc["ResNet-50", "slgs", "10gbe"].emulated_s), "another selection is not the published one"
    assert rows[rows.network == "10gbe"].published_s.isna().all()
    assert math.isnan(cells.loc["VGG-16", "dense", "1gbe"].published_s)


def test_emulated_iterations_and_timelines(tables):
    rows = tables["emulated"]
    assert list(rows.columns) == EMULATED and len(rows) == 12 and not rows.isna().any().any()
    where = rows[rows.method == "lags"].groupby("selection").emulated_in.unique().map(list).to_dict()
    assert where == {"published": ["smoke"], "ours": ["reference"]}
    events = tables["emulated_timeline"]
    assert list(events.columns) == TIMELINE
    lags = events[(events.method == "lags") & (events.selection == "published")]
    assert list(lags[lags.kind == "traced"].phase) == ["forward", "backward", "exchange"], "rank 0's only"
    predicted = lags[lags.kind == "predicted"]
    assert list(predicted.event) == ["b .. a", "b .. a"] and list(predicted.phase) == ["backward", "select"]
    assert list(predicted.end) == [0.2, 0.3]


def test_without_emulations_the_tables_have_their_columns(tmp_path):
    found = emulated_tables(emulations(tmp_path / "smoke"))
    assert {name: list(table.columns) for name, table in found.items()} == {
        "emulated": EMULATED,
        "emulated_timeline": TIMELINE,
    }
    assert not any(len(table) for table in found.values())


def test_a_profile_of_a_replication_without_published_times_has_only_its_own(tables, tmp_path, monkeypatch):
    emulate(tmp_path, "reference")
    monkeypatch.chdir(ROOT)
    for path in write_tables(tmp_path / "hieravg"):
        found = pd.read_csv(path)
        assert list(found.columns) == list(tables[path.stem].columns)
        assert len(found) == (10 if path.stem == "run_times" else 0), path.stem  # five ways on two networks


@pytest.mark.parametrize("name", ["summary.json", "iterations.csv", "timeline.json"])
def test_a_damaged_emulation_is_named(tmp_path, name):
    (emulate(tmp_path, "smoke") / name).write_text("{")
    with pytest.raises(SuiteError, match="damaged; remove .*resnet-50/lags and emulate it again"):
        emulated_tables(emulations(tmp_path / "smoke"))


def test_what_selection_takes_is_only_known_where_it_was_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert read_copies(tmp_path) is None
    assert set(published_subjects(None)) == {(model, "published") for model in MODELS}
    path = tmp_path / "tables" / "selection.json"
    write_json(path, {"ratio_to_copy": 1.0})
    with pytest.raises(SuiteError, match="selection.json is damaged"):
        read_copies(tmp_path)
    path.write_text(json.dumps({"fused_ratio_to_copy": 1.75}))
    assert read_copies(tmp_path) == 1.75


def test_refusals(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    run = CliRunner().invoke(app, ["times", "laptob", "--results", str(tmp_path)])
    assert isinstance(run.exception, ConfigError) and "did you mean 'laptop'?" in str(run.exception)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="run from the root of the suite's checkout"):
        write_tables(tmp_path / "smoke")

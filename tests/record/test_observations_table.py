"""What methods observe, from run folders to the table that claims read."""

import pandas as pd
import pytest
import yaml

from helpers import tiny_settings
from suite.claims.judge import judge
from suite.claims.measures import read_tables
from suite.claims.model import Claim, RunCheck
from suite.config import validate_config
from suite.config.profiles import profile_cells
from suite.record.aggregate import aggregate
from suite.speed.runs import RUN_TIME_COLUMNS
from training import trainer


def test_means_by_segment_and_quantity(tmp_path, monkeypatch):
    base = tiny_settings() | {"train": {"epochs": 1, "max_iterations": 6, "batch_size": 2, "checkpoint_every": 20}}
    methods = {"dense": {"method": "dense"}, "topk": {"method": {"name": "topk", "density": 0.1}}}
    (tmp_path / "replications" / "x").mkdir(parents=True)
    spec = {"profiles": {"little": {"text": {"title": "T", "base": base, "methods": methods, "seeds": [0, 1, 2]}}}}
    (tmp_path / "replications" / "x" / "experiments.yaml").write_text(yaml.safe_dump(spec))
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results" / "little"
    for cell in profile_cells("little"):
        trainer(validate_config(cell.config), results / "runs" / cell.folder).run()
    aggregate(results)
    table = pd.read_csv(results / "tables" / "observations.csv")
    assert set(table["method"]) == {"topk"} and set(table["quantity"]) == {"xi", "error_ratio"}
    for seed, own in table.groupby("seed"):
        found = pd.read_parquet(results / "runs" / "text" / "topk" / str(seed) / "observations.parquet")
        for row in own.itertuples():
            values = found.loc[(found["quantity"] == row.quantity) & (found["segment"] == row.segment), "value"]
            assert row.points == len(values) == 6 and row.above_0 == (values > 0).sum()
            assert (row.mean, row.max) == pytest.approx((values.mean(), values.max()))

    for name in ("predicted", "emulated", "emulated_timeline"):
        (results / "tables" / f"{name}.csv").write_text("a\n")
    pd.DataFrame(columns=RUN_TIME_COLUMNS).to_csv(results / "tables" / "run_times.csv", index=False)
    check = RunCheck(
        name="xi", measure="observed", experiment="text", method="topk", quantity="xi", expected="e", low=0
    )
    claim = Claim(id="X", text="t", source="s", judged_by=("little",), checks=(check,))
    (out,) = judge(claim, "little", read_tables(results))["checks"]
    means = table[table["quantity"] == "xi"].groupby("seed")["mean"].mean()
    assert out["value"] == pytest.approx(means.mean()) and out["count"] == 3 and out["held"]

"""The benchmarks' baselines do what they are named for, and their numbers fit together. Nothing here is about speed."""

import json
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from helpers import ROOT, require
from suite.bench.exchange_ranks import OurScheme, slowest
from suite.bench.schemes import MERGE_ENTRIES, DenseScheme, PublishedScheme, merged_backwards
from suite.bench.select import bench_select
from suite.bench.step import CASES, SKIPPED, _case, bench_step
from suite.bench.timing import interleaved, medians
from suite.cli.app import app
from suite.config import validate_config
from suite.data import load_dataset
from suite.models import build_model
from suite.plan import Layout
from suite.world import open_world
from suite.world.check import horovod_build
from suite.world.transports import VirtualTransport


def test_cases_take_turns_and_warm_up_does_not_count():
    calls: list[str] = []
    seconds = interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2, 1, lambda: calls.append("-")
    )
    assert "".join(calls) == 3 * "-a-b"
    assert {name: len(times) for name, times in seconds.items()} == {"a": 2, "b": 2}
    assert medians({"a": [3.0, 1.0, 2.0]}) == {"a": 2.0}


def test_a_round_takes_as_long_as_its_slowest_rank():
    assert slowest([[1.0, 5.0], [2.0, 4.0]]) == [2.0, 5.0]


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=20), least=st.integers(1, 100))
def test_merging_keeps_order_and_reaches_the_threshold(sizes: list[int], least: int):
    groups = merged_backwards(list(range(len(sizes))), tuple(sizes), least)
    assert [tensor for group in groups for tensor in group] == list(reversed(range(len(sizes))))
    held = [[sizes[tensor] for tensor in group] for group in groups]
    assert all(sum(group) >= least for group in held[:-1])
    assert all(sum(group[:-1]) < least for group in held)


def images(**sections) -> dict:
    return {
        "model": {"name": "resnet20"},
        "data": {"name": "synthetic", "samples": 64},
        "method": {"name": "lags", "density": 0.01},
        "world": {"workers": 1},
    } | sections


def test_ours_and_the_published_scheme_send_the_same_entries():
    """Two exchanges with their residuals; another gradient each time."""
    config = validate_config(images())
    named = list(build_model(config, load_dataset(config)).named_parameters())
    layout = Layout(tuple(name for name, _ in named), tuple(p.numel() for _, p in named))
    ours = OurScheme(config, open_world(config.world), layout)
    published = PublishedScheme(VirtualTransport().all_gather, 1, layout, 0.01)
    assert len(published.groups) < len(layout.sizes) and MERGE_ENTRIES == 8192
    for _ in range(2):
        gradient = torch.randn(layout.size)
        update = ours(gradient.clone())
        assert torch.equal(update, published(gradient.clone()))
        assert update.count_nonzero() == published.entries == ours.exchange.plan.entries


def test_dense_buckets_cover_the_gradient_once():
    layout = Layout(("a", "b", "c"), (7_000_000, 5, 10_000_000))
    gradient = torch.ones(layout.size)
    dense = DenseScheme(VirtualTransport().all_reduce, 2, layout)
    assert dense.messages == 2 and torch.equal(dense(gradient), torch.full_like(gradient, 0.5))


def test_select_compares_in_one_run():
    threads = torch.get_num_threads()
    found = bench_select(20_000, 0.01, repeats=1)
    assert found["k"] == 200 and torch.get_num_threads() == threads
    seconds = found["seconds"]
    assert found["ratio_to_topk"] == seconds["topk"] / seconds["ours"]
    assert found["limit_seconds"]["copy"] == pytest.approx(seconds["copy"])
    assert found["limit_seconds"]["ours"] == pytest.approx(seconds["copy"] / 2)


def test_a_case_of_step_keeps_what_its_method_knows():
    config = validate_config(images(method={"name": "lags", "density": 0.02, "messages": "layer"}))
    cases = {name: _case(config, 3, *case) for name, case in CASES.items()}
    assert cases["lags overlap"]["method"] == config.to_dict()["method"]
    assert cases["dense"]["method"]["messages"] == "layer"
    assert cases["slgs"]["method"]["name"] == "slgs" and cases["slgs"]["method"]["density"] == 0.02
    assert "density" not in cases["dense"]["method"]
    for name, values in cases.items():
        checked = validate_config(values)
        assert checked.world.overlap == name.endswith("overlap") and checked.assumption.every == 0
        assert checked.train.max_iterations == 3 + SKIPPED


@pytest.mark.slow
def test_step_runs_every_case():
    data = {"name": "synthetic", "samples": 16, "image_size": 8}
    config = validate_config(images(data=data, world={"workers": 2}, train={"batch_size": 2}))
    found = bench_step(config, iterations=1, rounds=1)
    assert found["milliseconds"].keys() == CASES.keys()
    fastest = max(found["ratio_to_dense"][name] for name in ("dense", "dense overlap"))
    assert fastest == pytest.approx(1.0)
    json.dumps(found, allow_nan=False)


@pytest.mark.slow
@pytest.mark.horovod
def test_exchange_prints_one_object(suite_command):
    build = horovod_build()
    require("horovod", "gloo" in build.controllers, f"Horovod is not here ({build.reason})")
    result = suite_command("bench", "exchange", "--quick", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    seconds = found["seconds"]
    assert found["ratio_to_published_scheme"] == pytest.approx(seconds["published_scheme"] / seconds["ours"])
    dense = min(seconds["dense_horovod"], seconds["dense_gloo"])
    assert found["ratio_to_dense"] == pytest.approx(dense / seconds["ours"])
    assert found["largest_difference"] < 1e-6 and found["ranks"] == 2


def test_select_prints_one_object_or_a_table():
    arguments = ["bench", "select", "--size", "5000", "--repeats", "1"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0 and json.loads(result.stdout)["size"] == 5000
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and "times as fast as torch.topk" in result.stdout


def test_predict_prints_one_object_or_a_table(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["bench", "predict", "VGG-16", "--quick", "--json"])
    found = json.loads(result.stdout)
    assert (found["layers"], found["workers"]) == (54, 16) and min(found["seconds"].values()) > 0
    given = [seconds for name, seconds in found["seconds"].items() if name.startswith("plan given")]
    assert found["longest_prediction_s"] == max(given)
    assert (
        "a prediction of a given plan takes"
        in CliRunner().invoke(app, ["bench", "predict", "VGG-16", "--quick"]).stdout
    )


def test_the_page_about_performance_names_the_commands():
    page = (ROOT / "docs" / "performance.md").read_text()
    for command in (
        "suite bench select",
        "suite bench exchange",
        "suite bench step",
        "suite bench predict",
        "suite measure network",
    ):
        assert command in page


def test_step_refuses_what_train_refuses(suite_command, tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(images(world={"workers": 1000})))
    result = suite_command("bench", "step", config)
    assert result.returncode == 2 and "cannot give 1000 workers a batch" in result.stderr

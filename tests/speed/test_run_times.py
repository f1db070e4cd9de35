"""Iteration times of a profile's own experiments, at the published efficiency of a similar model."""

import pytest

from suite.config import validate_config
from suite.config.profiles import find_cell
from suite.speed.published import published_model
from suite.speed.runs import RUN_TIME_COLUMNS, run_time_rows, scaled_layers


def test_a_published_model_at_its_own_batch_keeps_its_times():
    published = published_model("VGG-16")
    config = validate_config(find_cell("cifar/vgg16/lags/0").config)
    same = config.model_copy(update={"train": config.train.model_copy(update={"batch_size": published.times.batch})})
    layers = scaled_layers(same, published)
    assert layers.forward == pytest.approx(published.times.forward)
    assert layers.backward == pytest.approx(published.times.backward)
    assert layers.select == pytest.approx(published.times.lags.selection)
    assert layers.select_whole == pytest.approx(published.times.slgs.selection)
    quarter = scaled_layers(config, published)  # a batch of 32 in place of 128; selection knows no batch
    assert quarter.backward == pytest.approx(layers.backward / 4) and quarter.select == pytest.approx(layers.select)


def test_every_experiment_that_tells_accuracy_has_a_row_a_method_and_network():
    rows = list(run_time_rows("cifar-cpu"))
    assert all(tuple(row) == RUN_TIME_COLUMNS for row in rows)
    found = {(row["experiment"], row["method"], row["network"]): row for row in rows}
    assert len(found) == len(rows)
    for experiment in ("resnet20", "vgg16", "lstm"):
        for network in ("1gbe", "10gbe"):
            dense, lags = (found[experiment, method, network] for method in ("dense", "lags"))
            assert 0 < lags["compute_s"] < lags["iteration_s"]
            assert lags["compute_s"] == pytest.approx(dense["compute_s"])
            assert lags["iteration_s"] < dense["iteration_s"] and lags["bytes"] < dense["bytes"]
    rate = [row for row in rows if row["experiment"] == "rate"]  # vectors are no model anyone timed
    assert rate and all(row["evidence"] == "refused" and row["iteration_s"] is None for row in rate)
    assert all("no times of a model of vectors are published" in row["source"] for row in rate)


def test_an_experiment_with_costs_is_predicted_with_its_own():
    of_ratios = [row for row in run_time_rows("cifar-cpu") if row["method"] == "adaptive-1000"]
    named = [row for row in of_ratios if row["network"] != "0.1 Gb/s"]  # its ratios are for the network in costs
    assert named and all("method.adaptive plans for the network in costs" in row["source"] for row in named)
    rows = {row["method"]: row for row in run_time_rows("cifar-cpu") if row["network"] == "0.1 Gb/s"}
    assert rows["fixed-10"]["iteration_s"] > rows["dense"]["iteration_s"]  # a tenth of the entries, gathered from 16
    assert rows["adaptive-1000"]["density"] > 3 * rows["fixed-100"]["density"]
    assert rows["adaptive-1000"]["iteration_s"] == pytest.approx(rows["fixed-1000"]["iteration_s"], rel=0.01)


def test_data_made_for_timings_have_no_rows():
    assert not any(row["experiment"] == "ranks" for row in run_time_rows("laptop"))


def test_what_is_emulated_for_reference_has_none():
    assert list(run_time_rows("reference")) == []

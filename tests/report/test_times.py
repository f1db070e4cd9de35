"""The section on iteration times: numbers side by side, and sentences that follow from the tables."""

import pandas as pd
import pytest

from helpers import ROOT
from suite.report import words_of_times
from suite.report.build import _times
from suite.report.times import Crossing, IterationTimes
from suite.speed.published import largest_gain, read_published
from suite.words import method_label, network_name
from synthetic_times import MODELS, tables


@pytest.fixture
def stored(tmp_path):
    """Write the tables of a synthetic profile, some of them changed, and read them."""

    def write(emulated: bool = True, **changed: pd.DataFrame) -> IterationTimes:
        (tmp_path / "laptop" / "tables").mkdir(parents=True, exist_ok=True)
        for name, table in (tables(emulated) | changed).items():
            table.to_csv(tmp_path / "laptop" / "tables" / f"{name}.csv", index=False)
        return IterationTimes.read(tmp_path / "laptop")

    return write


def test_a_row_a_model_network_and_source(stored):
    rows = {(row.model, row.network, row.source): row for row in stored().side_by_side()}
    assert len(rows) == 4 * (3 + 2)
    row = rows["ResNet-50", "1gbe", "published"]
    assert (row.dense, row.slgs, row.lags) == (1.45, 0.666, 0.507)
    assert row.dense_over_lags == pytest.approx(2.86, abs=5e-3) and row.saved == pytest.approx(0.239, abs=5e-4)
    assert pd.isna(rows["VGG-16", "1gbe", "published"].dense_over_lags)


def test_both_maxima_of_pipelining(stored):
    """The published row gives the numbers that follow from the authors' columns."""
    rows = {(row.model, row.network, row.source): row for row in stored().side_by_side()}
    row = rows["ResNet-50", "1gbe", "published"]
    assert row.bound_selection == pytest.approx(1.527, abs=5e-4)
    # SLGS-SGD's total less its other phases is its exchange, to the rounding of what was published.
    assert row.bound_exchange == pytest.approx(1.294, abs=5e-4)
    assert row.share_selection == pytest.approx((0.666 / 0.507 - 1) / 0.527, abs=2e-3) and row.share_exchange > 1
    emulated = rows["ResNet-50", "1gbe", "emulated"]
    exchange = emulated.slgs - emulated.slgs_bound
    assert emulated.bound_exchange == largest_gain(0.09, 0.12, exchange)


def test_sentences_count_what_is_emulated(stored):
    times = stored()
    assert words_of_times.origin(times).startswith(
        "24 of 24 cells are emulated: 3 by this profile and 21 kept in results/reference."
    )
    assert "8 iterations in time stretched 10 to 40 times" in words_of_times.origin(times)
    assert words_of_times.missing(times) == ""
    error = (times.cells.predicted_s / times.cells.emulated_s - 1).abs()
    assert f"the median absolute difference is {error.median():.1%}" in words_of_times.accuracy(times)


def test_without_emulations_the_page_says_so(stored):
    times = stored(emulated=False)
    assert "Nothing was emulated for this profile" in words_of_times.origin(times)
    assert words_of_times.accuracy(times) == ""
    assert words_of_times.missing(times).startswith("Iteration times over a network: predicted, not emulated.")
    assert {row.source for row in times.side_by_side()} == {"published", "predicted"}


def test_some_emulations_are_counted(stored):
    cells = tables()["iteration_times"]
    cells.loc[cells.network == "10gbe", "emulated_s"] = float("nan")
    assert words_of_times.missing(stored(iteration_times=cells)).startswith("12 of 24 iteration times: predicted")


def test_where_dense_wins_is_said_by_source_and_network(stored):
    said = {sentence.partition(":")[0]: sentence for sentence in words_of_times.comparison(stored().side_by_side())}
    assert list(said) == [
        "Published, 1 GbE", "Predicted, 1 GbE", "Emulated, 1 GbE", "Predicted, 10 GbE", "Emulated, 10 GbE",
    ]  # fmt: skip
    assert "dense over LAGS-SGD is 2.86 (ResNet-50) to 8.52 (LSTM-PTB)" in said["Published, 1 GbE"]
    assert "dense is faster than LAGS-SGD for no model" in said["Emulated, 1 GbE"]
    assert "dense is faster than LAGS-SGD for all 4 models" in said["Predicted, 10 GbE"]


def test_a_recalled_total_that_no_ring_can_reach_is_named(stored):
    times = stored()
    sentence = words_of_times.too_fast(times, times.side_by_side())
    assert "ResNet-50 (1.45 s against 1.54 s)" in sentence and "LSTM" not in sentence


def test_exchange_that_bytes_do_not_explain_is_named(stored):
    times = stored()
    sentence = words_of_times.unexplained(times, times.side_by_side())
    assert "ResNet-50 318 ms against 25 ms predicted and 25 ms by the fit" in sentence
    assert words_of_times.unexplained(times, []) == ""


def test_the_conflict_is_explained_by_bandwidth_and_selection(stored):
    times = stored()
    said = words_of_times.conflict(times)
    assert said[0] == (
        "1.3 times as fast as dense with merged messages is predicted with the authors' selection for all 4 models at "
        "1 Gb/s and no model at 10 Gb/s, with our selection for all 4 models at 1 Gb/s and VGG-16 and LSTM-PTB at 10 "
        "Gb/s."
    )
    assert said[1].startswith("1.3 times as fast as dense with one message") and said[1] != said[0]
    assert said[5].endswith("is predicted just so.")
    assert said[-2].startswith(
        "From 1 to 10 Gb/s with the authors' selection, dense over LAGS-SGD falls so: VGG-16 from"
    )
    where = times.crossings
    where = where[(where.model == "ResNet-50") & (where.selection == "published") & (where.ratio == 1.3)].iloc[-1]
    assert f"1.3 at {where.bandwidth:.2g} Gb/s" in said[-2]


def test_without_our_selection_only_the_authors_stands_there(stored):
    found = tables()
    times = stored(**{name: found[name][found[name].selection == "published"] for name in ("predicted", "crossings")})
    assert times.choices() == []
    assert not any("our selection" in sentence for sentence in words_of_times.conflict(times))


def test_both_selections_stand_side_by_side(stored):
    rows = stored().choices()
    assert len(rows) == len(MODELS) * 2 * 2
    theirs, ours = rows[:2]
    assert ours.select == pytest.approx(0.03 * theirs.select) and ours.predicted["lags"] < theirs.predicted["lags"]
    assert ours.predicted["dense"] == theirs.predicted["dense"] and ours.emulated["dense"] == theirs.emulated["dense"]
    assert theirs.emulated["lags"] == pytest.approx(theirs.predicted["lags"], rel=0.05)
    assert pd.isna(ours.emulated["lags"])  # nobody emulated it


@pytest.mark.parametrize(
    "crossing, text",
    [(Crossing(1.3, 4.567, 8.0, 0.5), "4.6"), (Crossing(8.52, float("nan"), 7.25, 0.5), "never (highest 7.25)"),
     (Crossing(1.0, float("nan"), 9.0, 1.07), "always above (lowest 1.07)")],
)  # fmt: skip
def test_a_bandwidth_or_why_there_is_none(crossing: Crossing, text: str):
    assert words_of_times.crossing_text(crossing) == text


def test_the_authors_maxima_come_from_their_file(stored):
    published = read_published(ROOT / "replications" / "lags2019" / "published.yaml")
    assert _times(stored(), [published])["authors_bounds"]["ResNet-50"] == 1.527


def test_names_as_people_read_them():
    assert [method_label(name) for name in ("lags", "acp_sgd", "unheard-of")] == ["LAGS-SGD", "ACP-SGD", "unheard-of"]
    assert [network_name(name) for name in ("1gbe", "2.5gbe", "1gbe-fitted", "cluster")] == [
        "1 GbE", "2.5 GbE", "1 GbE (fitted)", "cluster",
    ]  # fmt: skip

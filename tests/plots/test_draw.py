"""Every figure of the gallery, drawn from synthetic tables."""

import json
import re
import shutil
from inspect import isfunction

import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.text import Text
from PIL import Image

from plots.gallery import draw_all, figure_modules
from plots.style import looks, panels, save
from plots.tables import Tables
from synthetic import write_results
from synthetic_runs import profile_runs

# Drawn from predictions alone, and from emulations.
PREDICTED, EMULATED = {"iteration_times", "bandwidth", "scaling"}, {"emulated_timeline", "prediction_error"}
MODULES = figure_modules()
each_figure = pytest.mark.parametrize("module", MODULES, ids=[module.__name__.rpartition(".")[2] for module in MODULES])


def name_of(module):
    return module.__name__.rpartition(".")[2]


def module_of(name):
    return next(module for module in MODULES if name_of(module) == name)


def captions_of(results):
    return {entry["name"]: entry for entry in json.loads((results / "figures" / "captions.json").read_text())}


@each_figure
def test_figure_is_drawn(module, drawn):
    image = Image.open(drawn / "figures" / f"{name_of(module)}.png").convert("RGB")
    assert image.width > 900 and image.height > 300
    assert len(image.getcolors(image.width * image.height)) > 50
    assert (drawn / "figures" / f"{name_of(module)}.svg").read_text().rstrip().endswith("</svg>")


def test_titles_of_panels_end_inside_the_figure():
    name = "LSTM 2 x 200 on Penn Treebank, 5 epochs"
    figure, axes = panels("Panels", [name] * 2, 3.0)
    for panel in axes:
        panel.set(ylim=(100, 900), ylabel="Test perplexity\n(lower is better)")
    figure.set_dpi(rcParams["savefig.dpi"])
    figure.draw_without_rendering()
    for panel in axes:
        title = panel.get_title("left")
        assert title.replace("\n", " ") == name
        drawn = next(text for text in panel.get_children() if isinstance(text, Text) and text.get_text() == title)
        assert drawn.get_window_extent().x1 < figure.bbox.x1


@each_figure
def test_equal_tables_give_equal_bytes(module, drawn, tmp_path):
    save(module.draw(Tables.read(drawn)), tmp_path, name_of(module))
    for kind in ("svg", "png"):
        file = f"{name_of(module)}.{kind}"
        assert (tmp_path / file).read_bytes() == (drawn / "figures" / file).read_bytes()


@each_figure
def test_module_offers_one_function(module):
    public = [
        name
        for name, value in vars(module).items()
        if isfunction(value) and value.__module__ == module.__name__ and value.__name__[0] != "_"
    ]
    assert public == ["draw"]


def test_captions_state_the_numbers(drawn):
    captions, runs = captions_of(drawn), pd.read_csv(drawn / "tables" / "runs.csv")
    assert list(captions) == [name_of(module) for module in MODULES]
    dense = runs[(runs.experiment == "digits") & (runs.method == "dense")]
    assert f"Dense S-SGD {100 * dense.final.mean():.1f}%" in captions["curves"]["caption"]
    assert "(3 seeds)" in captions["curves"]["caption"]
    assumption = pd.read_csv(drawn / "tables" / "assumption.csv")
    lags = assumption[(assumption.experiment == "digits") & (assumption.method == "lags")]
    assert f"{lags.above_one.sum():,} of {lags.points.sum():,} points" in captions["delta_segments"]["caption"]


def test_phases_say_where_dense_is_faster(drawn):
    caption = captions_of(drawn)["phases"]["caption"]
    assert "Dense is faster than LAGS-SGD here, by 7 ms an iteration" in caption
    assert "it saves 13 ms of exchange but select takes 19 ms more" in caption


def test_timeline_states_what_is_hidden(drawn):
    caption = captions_of(drawn)["timeline"]["caption"]
    assert "covers 0% of Dense S-SGD's exchange, 0% of SLGS-SGD's exchange and 90% of LAGS-SGD's exchange" in caption
    assert "Overlap on random images (3 seeds): back-propagation covers" in caption
    assert (
        "Until the last message has arrived, the traced iteration took 52 ms for LAGS-SGD (52 ms predicted)" in caption
    )


def test_absent_data_is_named_and_old_pictures_go(tmp_path):
    runs = [run for run in profile_runs() if run.experiment == "pydoc"]
    results = write_results(tmp_path, runs)
    (results / "figures").mkdir()
    (results / "figures" / "phases.svg").write_text("of an earlier profile")
    draw_all(results)
    missing = {name: entry["missing"] for name, entry in captions_of(results).items() if "missing" in entry}
    assert set(missing) == {"density_sweep", "ratio", "residual", "placement", "rate", "phases", "timeline", "pareto"}
    assert missing["phases"] == "this profile has no run on more than one process"
    assert not (results / "figures" / "phases.svg").exists()


def test_tables_without_rows_miss_every_figure(drawn, tmp_path):
    shutil.copytree(drawn / "tables", tmp_path / "tables")
    for path in (tmp_path / "tables").iterdir():
        pd.read_csv(path).head(0).to_csv(path, index=False)
    assert all("missing" in entry for entry in draw_all(tmp_path))


def test_one_seed_is_compared_where_nothing_has_several(tmp_path):
    results = write_results(tmp_path, [run for run in profile_runs() if run.seed == 0])
    assert Tables.read(results).comparisons == ["digits", "pydoc", "ranks", "field"]


def test_comparisons_leave_out_sweeps_ablations_and_timing_runs(drawn):
    assert Tables.read(drawn).comparisons == ["digits", "pydoc", "field"]


def test_runs_without_a_score_are_only_timed(drawn, tmp_path):
    tables, captions = Tables.read(drawn), captions_of(drawn)
    assert "overlap" in set(tables.runs.experiment) - set(tables.distinct_runs.experiment)
    showing = {name for name, entry in captions.items() if "Overlap on random images" in entry["caption"]}
    assert showing == {"phases", "timeline"}
    timed = write_results(tmp_path, [run for run in profile_runs() if run.experiment == "overlap"])
    named = {entry["name"] for entry in draw_all(timed) if "caption" in entry}
    assert named == {"phases", "timeline"} | PREDICTED | EMULATED


def test_iteration_times_state_every_source(drawn):
    caption = captions_of(drawn)["iteration_times"]["caption"]
    rows = pd.read_csv(drawn / "tables" / "iteration_times.csv").set_index(["model", "network", "method"])
    row = rows.loc[("ResNet-50", "1gbe", "lags")]
    assert f"LAGS-SGD 507 ms / {1e3 * row.predicted_s:,.0f} ms / {1e3 * row.emulated_s:,.0f} ms." in caption
    assert "VGG-16, 1 GbE (published / predicted / emulated): Dense S-SGD – / " in caption
    assert "LSTM-PTB, 10 GbE (predicted / emulated)" in caption


def test_bandwidth_says_where_dense_takes_over(drawn, tmp_path):
    rows = pd.read_csv(drawn / "tables" / "crossings.csv")
    row = rows[(rows.model == "ResNet-50") & (rows.selection == "ours") & (rows.ratio == 1)].iloc[-1]
    assert f"dense is the faster one above {row.bandwidth:.2g} Gb/s" in captions_of(drawn)["bandwidth"]["caption"]
    shutil.copytree(drawn / "tables", tmp_path / "tables")
    never = rows.assign(bandwidth=float("nan"), lowest_ratio=1.2)
    never.to_csv(tmp_path / "tables" / "crossings.csv", index=False)
    assert module_of("bandwidth").CAPTION(Tables.read(tmp_path)).count("dense is never the faster one") == 8


def test_error_of_predictions_is_that_of_the_cells(drawn):
    rows = pd.read_csv(drawn / "tables" / "iteration_times.csv")
    error = (rows.predicted_s / rows.emulated_s - 1).abs()
    caption = captions_of(drawn)["prediction_error"]["caption"]
    assert f"24 cells with 16 workers: the median absolute difference is {error.median():.1%}" in caption
    assert "18 cells with other numbers of workers" in caption


def test_the_profiles_own_emulation_is_traced(drawn):
    caption = captions_of(drawn)["emulated_timeline"]["caption"]
    assert "ResNet-50, 16 workers, 1 GbE: the traced iteration took" in caption and "VGG-16" not in caption


def test_without_emulations_predictions_are_drawn(tmp_path):
    tables = Tables.read(write_results(tmp_path, emulated=False))
    assert {name for name in PREDICTED | EMULATED if module_of(name).draw(tables) is None} == EMULATED
    assert "ResNet-50, 10 GbE (predicted): Dense" in module_of("iteration_times").CAPTION(tables)


def test_kinds_of_layers_state_counts_and_causes(drawn):
    caption = captions_of(drawn)["delta_kinds"]["caption"]
    table = pd.read_csv(drawn / "tables" / "delta_by_kind.csv")
    own = table[
        (table.experiment == "digits") & (table.method == "lags") & (table.kind == "normalisation") & table.k_is_one
    ]
    assert (
        f"(16 to 32 entries) {own.above_one.sum():,} of {own.points.sum():,}, at most {own.delta_max.max():.3f}"
        in caption
    )
    assert "because it overshot the mean" in caption and "documentation (3 seeds): no value lies above 1." in caption


def test_ratios_state_accuracy_bytes_and_times(drawn, tmp_path):
    caption, runs = captions_of(drawn)["ratio"]["caption"], pd.read_csv(drawn / "tables" / "runs.csv")
    final = runs.loc[(runs.experiment == "ratio") & (runs.method == "adaptive-100"), "final"].iloc[0]
    assert f"up to 100: {100 * final:.1f}%, 323 kB, 52.6 ms on 1 GbE, 50.3 ms on 10 GbE" in caption
    assert "(1 seed a point)" in caption and "Iteration times: A device." in caption
    shutil.copytree(drawn / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "run_times.csv").unlink()
    without = Tables.read(tmp_path)
    assert "Iteration times were not predicted." in module_of("ratio").CAPTION(without)
    assert module_of("ratio").draw(without) is not None and module_of("accuracy_time").draw(without) is None


def test_variants_of_a_method_stay_out_of_its_sweep_and_ablation(drawn):
    distinct = Tables.read(drawn).distinct_runs
    assert not distinct.adaptive.any() and set(distinct.lr_placement) == {"outside"}


def test_placement_looks_at_the_fall_of_the_rate(drawn):
    losses = pd.read_csv(drawn / "tables" / "losses.csv")
    own = losses[(losses.experiment == "placement") & (losses.method == "lags-inside")]
    before, after = own.loss[own.iteration.between(71, 80)].mean(), own.loss[own.iteration.between(81, 90)].mean()
    said = f"inside: training loss {before:.3f} in the epoch before and {after:.3f} in the one after"
    assert said in captions_of(drawn)["placement"]["caption"]


def test_time_to_a_share_of_dense_is_stated(drawn, tmp_path):
    caption = captions_of(drawn)["accuracy_time"]["caption"]
    epochs = pd.read_csv(drawn / "tables" / "epochs.csv")
    dense = epochs[(epochs.experiment == "digits") & (epochs.method == "dense")].sort_values("epoch")
    times = pd.read_csv(drawn / "tables" / "run_times.csv").set_index(["experiment", "method", "network"]).iteration_s
    reached = [of.iteration[of.value >= 0.95 * of.value.iloc[-1]].min() for _, of in dense.groupby("seed")]
    seconds = sum(reached) / 3 * times["digits", "dense", "1gbe"]
    assert "digits, 1 GbE (3 seeds)" in caption and f"95%: Dense S-SGD {seconds:.3g} seconds" in caption
    assert "LAGS-SGD never" in caption  # the LSTM's 99%


def test_pareto_says_what_nothing_beats_and_what_has_no_time(drawn):
    caption = captions_of(drawn)["pareto"]["caption"]
    runs = pd.read_csv(drawn / "tables" / "runs.csv")
    ends = runs[runs.experiment == "field"].groupby("label")[["final", "rounds"]].mean()
    unbeaten = {
        label for label, end in ends.iterrows()
        if not ((ends.rounds <= end.rounds) & (ends.final > end.final)).any()
        and not ((ends.rounds < end.rounds) & (ends.final >= end.final)).any()
    }  # fmt: skip
    (said,) = re.findall(r"rounds: ([^;]+);", caption)
    assert {label for label in ends.index if label in said} == unbeaten and 0 < len(unbeaten) < len(ends)
    assert "Without a time on 1 GbE and 10 GbE: gTop-k S-SGD, because trees are not timed here." in caption
    assert "Five methods on digits (2 seeds)" in caption and "documentation" not in caption


def test_pareto_without_predictions_shows_what_was_counted(drawn, tmp_path):
    shutil.copytree(drawn / "tables", tmp_path / "tables")
    (tmp_path / "tables" / "run_times.csv").unlink()
    tables = Tables.read(tmp_path)
    assert len(module_of("pareto").draw(tables).axes) == 2
    assert "No time was predicted for Dense S-SGD, SLGS-SGD," in module_of("pareto").CAPTION(tables)


def test_ways_of_one_method_are_drawn_by_name(drawn):
    assert Tables.read(drawn).variants == ["precision"]
    assert (
        "Number formats, ResNet-20 on digits (1 seed): mean final test accuracy of float32"
        in (captions_of(drawn)["curves"]["caption"])
    )


def test_one_seed_of_another_task_is_compared_too(tmp_path):
    """VGG-16 with its single seed stands beside ResNet-20 with three."""
    chosen = [
        run for run in profile_runs() if run.experiment == "digits" or (run.experiment == "pydoc" and run.seed == 0)
    ]
    assert Tables.read(write_results(tmp_path, chosen)).comparisons == ["digits", "pydoc"]


def test_a_new_method_gets_marks_of_its_own():
    known, more = looks([]), looks(["lags", "gtopk", "powersgd"])
    assert {name: more[name] for name in known} == known
    assert len(set(more.values())) == 5

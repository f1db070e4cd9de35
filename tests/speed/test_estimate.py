"""What a profile is said to take, against what is known of its runs."""

import pytest

from suite.config import validate_config
from suite.config.profiles import find_cell
from suite.data import load_dataset
from suite.speed.estimate import disk, estimate, iterations
from training import parameters_after


def test_iterations_follow_from_the_data():
    assert iterations(validate_config(find_cell("paper/resnet20/lags/0").config)) == 120 * (50_000 // (16 * 32))
    pydoc = validate_config(find_cell("laptop/pydoc/lags/0").config)
    assert iterations(pydoc) == 3 * load_dataset(pydoc).iterations(16, 8)
    assert iterations(validate_config(find_cell("smoke/digits/lags/0").config)) == 12


def test_a_row_an_experiment_and_method():
    rows = {(row["experiment"], row["method"]): row for row in estimate("smoke", "10gbe")}
    assert rows.keys() == {("digits", m) for m in ("dense", "slgs", "lags")} | {("pydoc", "lags"), ("ranks", "lags")}
    lags, ranks = rows["digits", "lags"], rows["ranks", "lags"]
    assert lags["seeds"] == 2 and ranks["ranks"] == 4 and lags["hours"] > 0
    assert ranks["rank_hours"] == pytest.approx(4 * ranks["hours"])
    assert rows["digits", "dense"]["bytes"] < lags["bytes"]


def test_every_profile_can_be_estimated():
    for profile in ("laptop", "cifar", "cifar-cpu"):
        assert all(row["iterations"] > 0 and row["bytes"] > 0 for row in estimate(profile, "10gbe")), profile


def test_workers_of_local_methods_have_vectors_of_their_own(tiny):
    plain = disk(tiny(method="dense"), 0)
    vectors = {"hier_avg": 4 * 2, "local_adaalter": 4 * 4}  # parameters and momentum; squares, twice
    for name, own in vectors.items():
        assert disk(tiny(method={"name": name}), 0) == pytest.approx(plain * (2 + own) / 2)


def test_what_a_worker_remembers_is_counted(tiny):
    """Without momentum there is a vector of parameters, and a worker's residual; deep gradient compression has two."""
    step = {"momentum": 0.0}
    lags, dgc = (disk(tiny(method={"name": name}, optimizer=step), 0) for name in ("lags", "dgc"))
    assert dgc == pytest.approx(lags * (1 + 4 * 2) / (1 + 4))


def test_rows_of_delta_are_counted_for_adaptive_ratios_too():
    fixed, adaptive = (
        validate_config(find_cell(f"cifar-cpu/ratio/{name}/0").config) for name in ("fixed-100", "adaptive-100")
    )
    assert disk(adaptive, 1000) == disk(fixed, 1000)


def test_the_size_on_disk_is_about_right(tiny, tmp_path):
    config = tiny(model={"name": "lstm", "hidden": 200}, train={"max_iterations": 12, "checkpoint_every": 4})
    parameters_after(config, tmp_path)
    real = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert disk(config, 12) == pytest.approx(real, rel=0.2)

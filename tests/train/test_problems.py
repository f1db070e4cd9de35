"""Small problems trained to their solutions: saddles, robust groups, and convex problems with one entry a step."""

import csv
from pathlib import Path

import pytest
import torch

from suite.config import validate_config
from suite.errors import ConfigError
from training import parameters_after, summary_of, trainer


def saddle(method: dict | str, heterogeneity: float, lr: float = 0.1, epochs: int = 4, **data):
    return validate_config({
        "model": {"name": "saddle"}, "data": {"name": "quadratics", "heterogeneity": heterogeneity, **data},
        "method": method, "optimizer": {"lr": lr, "momentum": 0.0}, "world": {"workers": 4},
        "train": {"epochs": epochs, "batch_size": 1, "checkpoint_every": 10**6},
    })  # fmt: skip


def sgda(tau: int, **settings) -> dict:
    return {"name": "local_sgda", "tau": tau} | settings


def final(config, folder: Path) -> float:
    trainer(config, folder).run()
    return summary_of(folder)["final"]


def assert_bits(a: torch.Tensor, b: torch.Tensor) -> None:
    assert torch.equal(a.view(torch.int32), b.view(torch.int32))


# -- saddles -----------------------------------------------------------------------------------------------------------


def test_local_steps_leave_a_floor_that_falls_with_the_rate(tmp_path):
    """Acceptance E: workers that differ, no noise, a constant rate. In float32 here; the rule alone goes to 1e-13 in
    float64, see tests/methods/test_local_rules.py."""
    every_step = final(saddle(sgda(1), 0.5), tmp_path / "1")
    tenth = final(saddle(sgda(10), 0.5), tmp_path / "10")
    slower = final(saddle(sgda(10), 0.5, lr=0.05, epochs=8), tmp_path / "slower")
    assert every_step < 2e-5 and tenth > 10 * every_step and tenth > 0.05
    assert 1.5 < tenth / slower < 3


def test_equal_workers_take_the_same_way_whatever_tau(tmp_path):
    ends = [parameters_after(saddle(sgda(tau), 0.0, epochs=1), tmp_path / str(tau)) for tau in (1, 5, 10)]
    assert_bits(ends[0], ends[1])
    assert_bits(ends[0], ends[2])


def test_averaging_every_step_is_centralised_sgda(tmp_path):
    """The model turns the sign of y's gradient, so dense S-SGD is descent and ascent on the mean function."""
    local, dense = (
        parameters_after(saddle(method, 0.5, epochs=1), tmp_path / str(number))
        for number, method in enumerate((sgda(1), "dense"))
    )
    torch.testing.assert_close(local, dense, rtol=1e-4, atol=1e-5)


def test_equal_workers_stay_equal_under_hier_avg(tmp_path):
    run = trainer(saddle({"name": "hier_avg", "k1": 3, "k2": 9, "group": 2}, 0.0, epochs=1), tmp_path)
    real, apart = run._iterate, []

    def iterate(*arguments):
        result = real(*arguments)
        first, *others = (worker.local["parameters"] for worker in run.workers)
        apart.extend(other for other in others if not torch.equal(first, other))
        return result

    run._iterate = iterate
    run.run()
    assert run.iteration == 100 and not apart


def test_a_snapshot_of_every_step_changes_nothing(tmp_path):
    """It is where everybody is; a later one is not."""
    plain, fresh, stale = (
        parameters_after(saddle(method, 0.5, epochs=1), tmp_path / str(number))
        for number, method in enumerate((sgda(1), sgda(1, snapshot_every=1), sgda(1, snapshot_every=5)))
    )
    assert_bits(plain, fresh)
    assert not torch.allclose(plain, stale, atol=1e-3)


def test_the_plus_variant_gets_there_too(tmp_path):
    assert final(saddle(sgda(2, snapshot_every=4), 0.0), tmp_path) < 1e-4


def test_y_steps_by_its_own_rate(tmp_path):
    """Without coupling, x and y are two problems: each goes by its rate alone."""
    ends = [
        parameters_after(
            saddle(sgda(2, ascent_ratio=ratio), 0.3, lr=lr, epochs=1, coupling=0.0), tmp_path / f"{ratio}{lr}"
        )
        for ratio, lr in ((4.0, 0.0125), (1.0, 0.0125), (1.0, 0.05))
    ]
    both, slow, fast = (end.split([10, 10]) for end in ends)
    torch.testing.assert_close(both[0], slow[0], rtol=0, atol=0)
    torch.testing.assert_close(both[1], fast[1], rtol=1e-5, atol=1e-6)


def test_a_model_of_other_data_is_refused():
    with pytest.raises(ConfigError, match="model saddle reads saddles, but dataset digits is images"):
        validate_config({"model": {"name": "saddle"}, "data": {"name": "digits"}, "method": "dense"})


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [sgda(4), {"name": "dense"}], ids=["local", "dense"])
def test_robust_training_stays_on_the_simplex_and_helps_the_worst_group(tmp_path, method: dict):
    """Weights of groups end unlike each other, more on groups of larger loss; any method projects."""
    run = trainer(validate_config({
        "model": {"name": "robust_linear", "smoothing": 0.2}, "data": {"name": "grouped", "spread": 2.0},
        "method": method, "optimizer": {"lr": 0.3, "momentum": 0.0}, "world": {"workers": 4},
        "train": {"epochs": 8, "batch_size": 8, "checkpoint_every": 10**6},
    }), tmp_path)  # fmt: skip
    real, weights = run._iterate, []

    def iterate(*arguments):
        result = real(*arguments)
        weights.extend(
            run.flat.views(vector)[1].clone()
            for vector in [worker.local["parameters"] for worker in run.workers if worker.local] or [run.flat.vector]
        )
        return result

    run._iterate = iterate
    run.run()
    assert all((q >= 0).all() and float(q.sum()) == pytest.approx(1, abs=1e-5) for q in weights)
    values = [float(row["value"]) for row in csv.DictReader(open(tmp_path / "epochs.csv"))]
    assert values[-1] < values[0] and weights[-1].std() > 0.05


# -- one entry a step --------------------------------------------------------------------------------------------------


def mem_sgd(features: int, samples: int, method: dict | str, shift: float, epochs: int):
    """Sequential, one sample a step, with the settings of the authors' experiments: gamma = 2, lambda = 1 / n; data are
    ours, like theirs in that rows have length 1."""
    return validate_config({
        "model": {"name": "linear", "l2": 1 / samples},
        "data": {"name": "labelled", "samples": samples, "features": features, "unit_rows": True},
        "method": method, "world": {"workers": 1}, "assumption": {"every": 0},
        "optimizer": {
            "lr": 2.0, "momentum": 0.0, "average": {"shift": shift},
            "inverse_time": {"strength": 1 / samples, "shift": shift},
        },
        "train": {"epochs": epochs, "batch_size": 1, "checkpoint_every": 10**6},
    })  # fmt: skip


@pytest.mark.slow
def test_one_entry_a_step_with_memory_is_as_good_as_all_of_them(tmp_path):
    """Acceptance B: C24 to C26, scaled."""
    features, samples = 100, 2500
    top = {"name": "mem_sgd", "density": 1 / features}
    random = top | {"selection": "random"}
    cases = {
        "sgd": ("dense", features, 3), "top": (top, features, 3),
        "no memory": (top | {"error_feedback": False}, features, 3),
        "random": (random, features, 1), "random, no shift": (random, 1.0, 1),
    }  # fmt: skip
    losses = {name: final(mem_sgd(features, samples, *case), tmp_path / name) for name, case in cases.items()}
    assert losses["top"] <= losses["sgd"] + 1e-3
    assert losses["no memory"] > 2 * losses["sgd"]
    assert losses["random, no shift"] > 1.5 * losses["random"]

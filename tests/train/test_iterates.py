"""Rates that fall with the iteration, and weighted averages of iterates: what Mem-SGD's theorem needs."""

import pytest
import torch

from suite.config import validate_config
from suite.config.optimizer import IterateAverageConfig, OptimizerConfig
from suite.train.optimizer import IterateAverage
from suite.train.schedule import learning_rate
from training import summary_of, trainer


def inverse_time(lr: float = 2.0, strength: float = 0.01, shift: float = 100.0, **settings) -> OptimizerConfig:
    return OptimizerConfig(lr=lr, inverse_time={"strength": strength, "shift": shift}, **settings)


def test_the_rate_is_gamma_over_lambda_times_t_plus_a():
    rates = [learning_rate(inverse_time(), 16, epoch, i, 5) for epoch in range(3) for i in range(5)]
    assert rates == pytest.approx([2 / (0.01 * (t + 100)) for t in range(15)])


def test_it_counts_iterations_where_batches_grow():
    """The fourth iteration may begin with an epoch's ninth base batch."""
    assert learning_rate(inverse_time(), 16, 0, 9, 20, step=3) == pytest.approx(2 / (0.01 * 103))


def test_bottous_rate_is_a_case_of_it():
    eta, strength = 0.3, 0.02
    config = inverse_time(lr=1.0, strength=strength, shift=1 / (eta * strength))
    rates = [learning_rate(config, 1, 0, t, 100) for t in range(100)]
    assert rates == pytest.approx([eta / (1 + eta * strength * t) for t in range(100)])


def test_decays_act_on_gamma():
    config = inverse_time(decay_epochs=(1,))
    assert learning_rate(config, 16, 1, 0, 5) == pytest.approx(0.1 * 2 / (0.01 * 105))


@pytest.mark.parametrize("shift", [0.0, 1.0, 200.0])
def test_the_average_kept_online_is_the_weighted_average(shift: float):
    iterates = torch.randn(500, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    average = IterateAverage(IterateAverageConfig(shift=shift), iterates[0])
    for iterate in iterates:
        average.include(iterate)
    weights = (shift + torch.arange(500, dtype=torch.float64)) ** 2
    torch.testing.assert_close(average.vector, weights @ iterates / weights.sum(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shift", [1.0, 7.0, 200.0])
def test_the_sum_of_weights_of_the_theorem(shift: float):
    """S_T = T/6 (2T^2 + 6aT - 3T + 6a^2 - 6a + 1) is the sum, and at least T^3 / 3 for a >= 1."""
    for steps in (1, 2, 10, 1000):
        total = sum((shift + t) ** 2 for t in range(steps))
        closed = steps / 6 * (2 * steps**2 + 6 * shift * steps - 3 * steps + 6 * shift**2 - 6 * shift + 1)
        assert total == pytest.approx(closed, rel=1e-12) and total >= steps**3 / 3 * (1 - 1e-12)


def regression(**sections):
    values = {
        "model": {"name": "linear", "l2": 0.01},
        "data": {"name": "labelled", "samples": 120, "features": 6},
        "method": {"name": "slgs", "density": 0.2, "lr_placement": "inside"},
        "optimizer": {"lr": 0.5, "momentum": 0.0, "average": {"shift": 2}},
        "world": {"workers": 2},
        "train": {"epochs": 2, "batch_size": 3},
    }
    return validate_config(values | sections)


def test_a_test_is_of_the_average_and_training_goes_on_from_the_last_iterate(tmp_path):
    averaged = trainer(regression(), tmp_path / "averaged")
    iterates, tested, real, evaluate = [], [], averaged.optimizer.step, averaged.task.evaluate

    def step(update, lr):
        iterates.append(averaged.flat.vector.double().clone())
        real(update, lr)

    def look(model):
        tested.append(averaged.flat.vector.clone())
        return evaluate(model)

    averaged.optimizer.step, averaged.task.evaluate = step, look
    averaged.run()
    assert len(iterates) == 40 and len(tested) == 2
    for count, found in ((20, tested[0]), (40, tested[1])):
        weights = (2.0 + torch.arange(count, dtype=torch.float64)) ** 2
        torch.testing.assert_close(found.double(), weights @ torch.stack(iterates[:count]) / weights.sum())
    plain = trainer(regression(optimizer={"lr": 0.5, "momentum": 0.0}), tmp_path / "plain")
    plain.run()
    assert torch.equal(plain.flat.vector, averaged.flat.vector)
    assert summary_of(tmp_path / "plain")["final"] != summary_of(tmp_path / "averaged")["final"]


def test_the_average_is_in_the_checkpoint(tmp_path):
    def run(iterations: int, folder: str):
        train = {"epochs": 2, "batch_size": 3, "max_iterations": iterations}
        made = trainer(regression(train=train), tmp_path / folder)
        made.run()
        return made

    straight = run(30, "straight")
    run(13, "broken")
    resumed = run(30, "broken")
    assert resumed.resumed_at == [13]
    assert torch.equal(resumed.optimizer.average.vector, straight.optimizer.average.vector)
    scores = [summary_of(tmp_path / folder)["final"] for folder in ("straight", "broken")]
    assert scores[0] == scores[1]

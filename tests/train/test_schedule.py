"""The learning rate is a function of the position in training."""

import pytest

from suite.config.experiment import OptimizerConfig
from suite.train.schedule import learning_rate


def test_warm_up_from_lr_over_p_then_decay():
    config = OptimizerConfig(lr=1.6, warmup_epochs=2, decay_epochs=(4, 6))
    rates = [learning_rate(config, 16, epoch, i, 10) for epoch in range(8) for i in range(10)]
    assert rates[0] == pytest.approx(0.1) and rates[10] == pytest.approx(0.85) and rates[20] == 1.6
    assert rates == sorted(rates[:20]) + rates[20:] and len(set(rates[20:40])) == 1
    assert rates[40] == pytest.approx(0.16) and rates[60] == pytest.approx(0.016)


def test_without_warm_up_the_rate_is_constant():
    assert {learning_rate(OptimizerConfig(lr=0.1), 16, e, i, 5) for e in range(3) for i in range(5)} == {0.1}

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


def test_a_chain_never_enters_a_stage_behind_a_later_one():
    """The authors' schedule for PTB, boundaries (63, 60): constant to 63, then two factors at once."""

    def rates(chain: bool) -> list[float]:
        config = OptimizerConfig(lr=22, decay_epochs=(63, 60), decay_chain=chain)
        return [learning_rate(config, 16, epoch, 0, 83) for epoch in (59, 60, 62, 63)]

    assert rates(chain=True) == pytest.approx([22, 22, 22, 0.22])
    assert rates(chain=False) == pytest.approx([22, 2.2, 2.2, 0.22])


def test_in_rising_order_a_chain_is_the_usual_schedule():
    plain, chain = (OptimizerConfig(decay_epochs=(81, 122, 155), decay_chain=chain) for chain in (False, True))
    for epoch in range(0, 200, 7):
        assert learning_rate(plain, 16, epoch, 0, 97) == learning_rate(chain, 16, epoch, 0, 97)

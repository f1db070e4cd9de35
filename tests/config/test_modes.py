"""Sound by default; as published on demand, quirk by quirk."""

import pytest

from helpers import tiny_settings
from suite.config import validate_config
from suite.config.profiles import find_cell


def settings(**sections) -> dict:
    return tiny_settings() | sections


def test_sound_is_the_default_and_has_no_quirk():
    config = validate_config(settings(data={"name": "ptb"}))
    assert config.mode == "sound" and config.data.windows == "streams"
    assert config.train.batchnorm == "average" and not config.optimizer.decay_chain


def test_as_published_switches_every_quirk_on():
    config = validate_config(settings(data={"name": "ptb"}, mode="as-published"))
    assert config.data.windows == "shuffled" and config.train.batchnorm == "worker0" and config.optimizer.decay_chain


def test_a_quirk_that_is_set_stays_as_it_is_set():
    values = settings(data={"name": "ptb", "windows": "streams"}, mode="as-published", train={"batchnorm": "average"})
    config = validate_config(values)
    assert config.data.windows == "streams" and config.train.batchnorm == "average" and config.optimizer.decay_chain


@pytest.mark.parametrize("data", [{"name": "pydoc"}, {"name": "pydoc", "vocabulary": 50}])
def test_data_without_windows_are_left_alone(data: dict):
    assert validate_config(settings(data=data, mode="as-published")).train.batchnorm == "worker0"


def test_a_resolved_configuration_reads_back_as_itself():
    config = validate_config(settings(data={"name": "ptb"}, mode="as-published"))
    assert validate_config(config.to_dict()) == config


def test_published_experiments_of_the_full_profile_are_as_published():
    config = validate_config(find_cell("cifar/lstm-as-published/lags/0").config)
    assert config.data.windows == "shuffled" and config.optimizer.decay_chain
    sound = validate_config(find_cell("cifar/lstm/lags/0").config)
    assert sound.data.windows == "streams" and sound.model == config.model

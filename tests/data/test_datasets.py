"""Splits, orders and streams are functions of recorded seeds and never overlap."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.config.experiment import DigitsConfig, PydocConfig, SyntheticConfig
from suite.data.digits import load_digits
from suite.data.pydoc import load_pydoc, tokenize
from suite.data.synthetic import load_synthetic
from suite.errors import ConfigError


def test_digits_are_the_real_ones():
    from sklearn.datasets import load_digits as reference

    data, raw = load_digits(DigitsConfig()), reference()
    assert data.train_size + len(data.test[0]) == 1797 and data.train[0].shape[1:] == (1, 8, 8)
    counts = np.bincount(torch.cat([data.train[1], data.test[1]]).numpy())
    np.testing.assert_array_equal(counts, np.bincount(raw.target))
    assert float(data.train[0].mean()) == pytest.approx(0, abs=1e-5) and float(data.train[0].std()) == pytest.approx(
        1, abs=1e-4
    )


def test_the_split_is_fixed_by_its_seed():
    first, again, other = (load_digits(DigitsConfig(split_seed=seed)) for seed in (0, 0, 1))
    assert first.sha256 == again.sha256 != other.sha256


def test_image_size():
    assert load_digits(DigitsConfig(image_size=16)).train[0].shape[1:] == (1, 16, 16)


@given(workers=st.integers(1, 20), batch=st.integers(1, 60), seed=st.integers(0, 9), epoch=st.integers(0, 9))
@settings(max_examples=30)
def test_an_epoch_takes_every_sample_at_most_once(workers: int, batch: int, seed: int, epoch: int):
    data = load_digits(DigitsConfig())
    order = data.epoch_order(seed, epoch, workers, batch)
    assert order.shape == (data.iterations(workers, batch), workers, batch)
    assert order.unique().numel() == order.numel() == data.train_size - data.dropped(workers, batch)
    assert torch.equal(order, data.epoch_order(seed, epoch, workers, batch))


def test_text_is_split_by_topic_and_streams_are_contiguous():
    data = load_pydoc(PydocConfig())
    assert data.vocabulary[:2] == ("<unk>", "<eos>") and len(data.vocabulary) == 2000
    assert data.train_size > 10 * len(data.test) / 3 and int(data.train.max()) < 2000
    streams = data.streams(16, 4)
    length = streams.shape[-1]
    for worker in (0, 7, 15):
        for row in range(4):
            start = (worker * 4 + row) * length
            assert torch.equal(streams[worker, row], data.train[start : start + length])
    used = data.iterations(16, 4) * data.sequence_length
    assert used + 1 <= length


def test_synthetic_images_are_fixed_by_their_settings():
    data, again, other = (
        load_synthetic(SyntheticConfig(samples=64, channels=2, classes=5, image_size=16, split_seed=seed))
        for seed in (0, 0, 1)
    )
    assert data.train[0].shape == (64, 2, 16, 16) and data.classes == 5 and data.channels == 2
    assert data.train[0].dtype == torch.float32 and data.train[1].dtype == torch.int64
    assert int(data.train[1].max()) < 5 and len(data.test[0]) == 8
    assert data.sha256 == again.sha256 != other.sha256


def test_synthetic_classes_differ_in_their_means():
    """Otherwise no loss could fall."""
    images, labels = load_synthetic(SyntheticConfig(samples=200, channels=1, classes=2)).train
    means = [float(images[labels == c].mean()) for c in (0, 1)]
    noise = 1 / (32 * len(labels) ** 0.5)
    assert abs(means[0] - means[1]) > 10 * noise


def test_tokens():
    assert tokenize("Call f(x), twice:\n\n   return 42\n") == [
        "call",
        "f",
        "(",
        "x",
        ")",
        ",",
        "twice",
        ":",
        "<eos>",
        "return",
        "4",
        "2",
        "<eos>",
    ]


def test_missing_data_is_one_sentence(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match="the digits ship inside scikit-learn, which is not installed; run `make setup`"
    ):
        load_digits(DigitsConfig())

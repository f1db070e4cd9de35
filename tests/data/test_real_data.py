"""The real CIFAR-10 and Penn Treebank, where SUITE_DATA names them."""

import pytest
import torch

from suite.config.experiment import Cifar10Config, PtbConfig
from suite.data.cifar10 import load_cifar10
from suite.data.ptb import load_ptb


@pytest.mark.slow
def test_cifar10_has_its_classes(real_data):
    found = load_cifar10(Cifar10Config())
    for (images, labels), each in ((found.train, 5000), (found.test, 1000)):
        assert images.shape == (10 * each, 3, 32, 32) and torch.equal(torch.bincount(labels), torch.full((10,), each))
    assert found.iterations(16, 32) == 97 and found.dropped(16, 32) == 50_000 - 97 * 512
    # Commonly given for these images; those of the JPEG tree were compressed once more.
    torch.testing.assert_close(found.scale[0].flatten(), torch.tensor([0.4914, 0.4822, 0.4465]), atol=1e-3, rtol=0)
    torch.testing.assert_close(found.scale[1].flatten(), torch.tensor([0.2470, 0.2435, 0.2616]), atol=3e-3, rtol=0)


def test_penn_treebank_has_its_words(real_data):
    """Mikolov et al. 2010: 929k / 73k / 82k words, ends of lines among them, and a vocabulary of 10,000."""
    found = load_ptb(PtbConfig())
    assert (found.train_size, len(found.test), len(load_ptb(PtbConfig(evaluate="test")).test)) == (
        929_589,
        73_760,
        82_430,
    )
    assert found.classes == len(set(found.vocabulary)) == 10_000 and {"<unk>", "<eos>"} < set(found.vocabulary)
    assert int(torch.bincount(found.train).argmax()) == found.vocabulary.index("the")

"""Data of small problems: what is drawn, and what is read from files in LIBSVM's format."""

import bz2

import numpy as np
import pytest
import torch

from suite.config import validate_config
from suite.config.problems import GroupedConfig, LabelledConfig, LibsvmConfig, QuadraticsConfig
from suite.data.files import VARIABLE
from suite.data.libsvm import load_libsvm
from suite.data.quadratics import load_quadratics
from suite.data.vectors import load_grouped, load_labelled
from suite.errors import ConfigError


def test_labelled_vectors_can_be_told_apart_by_a_line():
    data = load_labelled(LabelledConfig(samples=400, features=10))
    vectors, labels = data.train
    assert vectors.shape == (400, 10) and set(labels.tolist()) == {-1.0, 1.0} and data.channels == 10
    classifier = torch.linalg.lstsq(vectors, labels[:, None]).solution[:, 0]
    assert ((vectors @ classifier).sign() == labels).float().mean() > 0.9
    flipped = load_labelled(LabelledConfig(samples=400, features=10, flipped=0.2)).train[1]
    assert 0.1 < (flipped != labels).float().mean() < 0.3


def test_rows_scales_and_zeros_are_as_asked():
    vectors = load_labelled(LabelledConfig(samples=300, features=40, nonzeros=0.1, unit_rows=True)).train[0]
    lengths = vectors.norm(dim=1)
    assert torch.allclose(lengths[lengths > 0], torch.ones(()), atol=1e-6)
    assert 0.08 < (vectors != 0).float().mean() < 0.12
    plain, scaled = (
        load_labelled(LabelledConfig(samples=2000, features=60, scales=scales)).train[0].std(dim=0)
        for scales in ((1.0, 0.5), (0.01, 0.5))
    )
    # The same scales were drawn: those below a half became a hundredth of themselves, the others stayed.
    small = plain < 0.4
    assert torch.allclose(scaled[small], 0.01 * plain[small], rtol=1e-3)
    assert torch.equal(scaled[plain > 0.6], plain[plain > 0.6]) and 0.2 < small.float().mean() < 0.7


def test_groups_are_equally_large_and_differ():
    data = load_grouped(GroupedConfig(groups=3, samples=300, features=8, spread=2.0))
    vectors, targets = data.train
    assert torch.bincount(targets[:, 1].long()).tolist() == [100] * 3
    fits = [
        torch.linalg.lstsq(vectors[targets[:, 1] == g], targets[targets[:, 1] == g, :1]).solution[:, 0]
        for g in range(3)
    ]
    agreement = torch.nn.functional.cosine_similarity(fits[0], fits[1], dim=0)
    assert agreement < 0.9


def test_workers_have_the_same_function_unless_they_are_told_to_differ():
    same, other = (load_quadratics(QuadraticsConfig(heterogeneity=h)) for h in (0.0, 0.3))
    assert all(map(np.array_equal, same.function(0), same.function(5)))
    assert not any(map(np.array_equal, other.function(0), other.function(5)))
    assert all((values > 0).all() for values in (other.function(5)[0], other.function(5)[2]))


# -- LIBSVM ------------------------------------------------------------------------------------------------------------

TEXT = """\
+1 1:0.5 3:-2 # a comment
-1 2:1.25

+1 1:1 2:2 3:3
-1
"""
DENSE = [[0.5, 0, -2], [0, 1.25, 0], [1, 2, 3], [0, 0, 0]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv("SUITE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text(TEXT)
    return tmp_path


def test_a_file_is_read_as_it_stands(folder):
    data = load_libsvm(LibsvmConfig(file="a.txt"))
    vectors, labels = data.train.dense(torch.arange(4), data.channels)
    assert vectors.tolist() == DENSE and labels.tolist() == [1, -1, 1, -1] and data.train_size == 4
    vectors, labels = data.train.dense(torch.tensor([2, 3, 0]), 3)
    assert vectors.tolist() == [DENSE[2], DENSE[3], DENSE[0]] and labels.tolist() == [1, -1, 1]
    parts = list(data.test_batches(3))
    assert [len(labels) for _, labels in parts] == [3, 1] and parts[1][0].tolist() == [DENSE[3]]


def test_compressed_files_other_labels_and_more_features(folder):
    (folder / "b.bz2").write_bytes(bz2.compress(TEXT.replace("+1", "2").replace("-1", "0").encode()))
    data = load_libsvm(LibsvmConfig(file="b.bz2", test_file="a.txt", features=5))
    assert data.channels == 5 and torch.equal(data.train.labels, data.test.labels)


@pytest.mark.parametrize("text, reason", [
    ("1 1:0.5\n2 1:1\n3 1:1\n", "has the labels 1, 2, 3, and a linear classifier has two"),
    ("1 1:0.5\n-1 nonsense\n", "is not in LIBSVM's format"),
])  # fmt: skip
def test_other_files_are_refused(folder, text: str, reason: str):
    (folder / "a.txt").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        load_libsvm(LibsvmConfig(file="a.txt"))


def test_what_is_missing_or_too_long_is_said(folder, monkeypatch):
    with pytest.raises(ConfigError, match="holds no file c.txt"):
        load_libsvm(LibsvmConfig(file="c.txt"))
    with pytest.raises(ConfigError, match="vectors of 3 entries and data.features is 2"):
        load_libsvm(LibsvmConfig(file="a.txt", features=2))
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ConfigError, match="looked for in the folder of data"):
        load_libsvm(LibsvmConfig(file="a.txt"))


def test_a_linear_model_learns_from_a_file(folder):
    from training import summary_of, trainer

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((64, 3))
    lines = [f"{1 if x[0] > 0 else -1} 1:{x[0]:.4f} 2:{x[1]:.4f} 3:{x[2]:.4f}" for x in rows]
    (folder / "a.txt").write_text("\n".join(lines))
    config = validate_config({
        "model": {"name": "linear", "l2": 0.01}, "data": {"name": "libsvm", "file": "a.txt"}, "method": "dense",
        "optimizer": {"lr": 1.0, "momentum": 0.0}, "world": {"workers": 2}, "train": {"epochs": 5, "batch_size": 4},
    })  # fmt: skip
    trainer(config, folder / "run").run()
    summary = summary_of(folder / "run")
    assert summary["metric"] == "training_objective" and summary["final"] < 0.4 < np.log(2)

"""Penn Treebank as texts and as a zip, and what is refused."""

import shutil

import pytest
import torch
import yaml
from trees import PTB_SIZES, PTB_VOCABULARY, ptb_text, ptb_texts, zipped

from helpers import tiny_settings
from suite.config.experiment import PtbConfig
from suite.data.ptb import load_ptb
from suite.errors import ConfigError


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A few lines make a whole data set."""
    monkeypatch.setattr("suite.data.ptb.SIZES", PTB_SIZES)
    monkeypatch.setattr("suite.data.ptb.VOCABULARY", PTB_VOCABULARY)


def load(**settings):
    return load_ptb(PtbConfig(**{"sequence_length": 3} | settings))


def test_the_texts_as_they_stand(data):
    ptb_texts(data)
    found = load()
    assert found.vocabulary[:6] == ("<unk>", "w0", "w1", "w2", "<eos>", "w3") and found.classes == PTB_VOCABULARY
    assert found.train[:6].tolist() == [0, 1, 2, 3, 4, 5] and found.train.dtype == torch.int64
    words = [found.vocabulary[token] for token in found.test]
    expected = [word for line in ptb_text(40, 1).splitlines() for word in (*line.split(), "<eos>")]
    assert words == expected and found.unit == "tokens"


def test_which_text_is_tested_on_and_how_much_is_trained_on(data):
    ptb_texts(data)
    assert [len(load(evaluate=part).test) for part in ("valid", "test")] == [40, 50]
    assert load(max_train_tokens=33).train_size == 33


@pytest.mark.parametrize("below", ["", "ptb"])
def test_a_zip_is_its_texts(data, tmp_path, below: str):
    ptb_texts(tmp_path / "texts" / "simple-examples")
    zipped(tmp_path / "texts", data / "ptb.zip")
    from_zip = load()
    shutil.copytree(tmp_path / "texts" / "simple-examples", data / below, dirs_exist_ok=True)
    assert from_zip.sha256 == load().sha256 and from_zip.vocabulary == load().vocabulary


def test_streams_are_contiguous_and_end_where_the_next_begins(data):
    """Worker p's stream r is text p * batch + r; nothing is read twice, and the hidden state follows its own text."""
    ptb_texts(data)
    found = load()
    streams = found.streams(3, 2)
    assert streams.shape == (3, 2, 20) and torch.equal(streams.flatten(), found.train[:120])
    assert found.iterations(3, 2) == 6 and found.dropped(3, 2) == 120 - 6 * 6 * 3


def test_shuffled_windows_are_a_permutation_of_the_same_windows(data):
    """The authors' quirk: each window is read once an epoch, in an order of (seed, epoch)."""
    ptb_texts(data)
    streams, shuffled = load(), load(windows="shuffled")
    assert streams.window_order(0, 0, 6).tolist() == list(range(6))
    orders = [shuffled.window_order(seed, epoch, 6).tolist() for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert all(sorted(order) == list(range(6)) for order in orders) and len(set(map(tuple, orders))) == 3
    assert shuffled.window_order(0, 0, 6).tolist() == orders[0]
    assert torch.equal(streams.streams(3, 2), shuffled.streams(3, 2))


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(match: str) -> None:
    with pytest.raises(ConfigError, match=match) as caught:
        load()
    assert "\n" not in str(caught.value)


def change(data, part: str, edit) -> None:
    path = data / f"ptb.{part}.txt"
    path.write_bytes(edit(path.read_bytes()))


def test_no_folder():
    refused(r"Penn Treebank is not ours to download: name a folder with ptb.\{train,valid,test\}.txt")


def test_an_empty_folder(data):
    refused("holds no Penn Treebank: neither ptb.train.txt, ptb.valid.txt and ptb.test.txt nor a ptb")


def test_one_text_is_missing(data):
    (ptb_texts(data) / "ptb.valid.txt").unlink()
    refused("holds no Penn Treebank")


def test_another_vocabulary(data):
    ptb_texts(data)
    change(data, "train", lambda text: text.replace(b"w3", b"w2"))
    refused("the training text has 9 different words and Penn Treebank .* has 10 with <unk>")


def test_a_text_without_unknown_words(data):
    ptb_texts(data)
    for part in PTB_SIZES:
        change(data, part, lambda text: text.replace(b"<unk>", b"what"))
    refused("take that preparation, whole")


def test_a_training_text_cut_short(data):
    ptb_texts(data)
    change(data, "train", lambda text: text[: text.rindex(b"\n", 0, -1) + 1])
    refused("ptb.train.txt has 115 tokens with its ends of lines, not 120; copy it anew, whole")


def test_a_test_text_cut_short(data):
    ptb_texts(data)
    change(data, "test", lambda text: text[: len(text) // 2])
    refused("ptb.test.txt has .* tokens with its ends of lines, not 50")


def test_a_word_the_training_text_lacks(data):
    ptb_texts(data)
    change(data, "valid", lambda text: text.replace(b"w5", b"perestroika", 1))
    refused("ptb.valid.txt has the word 'perestroika', which the training text lacks")


def test_a_text_that_is_not_utf_8(data):
    ptb_texts(data)
    change(data, "valid", lambda text: b"\xff" + text)
    refused("a text is not UTF-8 .*; copy it anew")


def test_a_zip_without_one_of_the_texts(data, tmp_path):
    (ptb_texts(tmp_path / "texts") / "ptb.test.txt").unlink()
    zipped(tmp_path / "texts", data / "ptb.zip")
    refused("ptb.zip does not hold ptb.test.txt; copy it anew")


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_a_truncated_zip(data, tmp_path, keep: int):
    path = zipped(ptb_texts(tmp_path / "texts"), data / "ptb.zip")
    path.write_bytes(path.read_bytes()[:keep])
    refused("ptb.zip is damaged .*; copy it anew")


def test_a_zip_with_a_changed_byte(data, tmp_path):
    path = zipped(ptb_texts(tmp_path / "texts"), data / "ptb.zip")
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF
    path.write_bytes(content)
    refused("ptb.zip is damaged .*; copy it anew")


def test_the_command_line_says_it_in_one_line(suite_command, tmp_path):
    """The sizes of the real set hold here."""
    ptb_texts(tmp_path / "texts")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(tiny_settings() | {"data": {"name": "ptb"}}))
    result = suite_command("train", "config.yaml", "--data-root", "texts", "--out", "run")
    assert result.returncode == 2 and not (tmp_path / "run").exists()
    (line,) = [line for line in result.stderr.splitlines() if line]
    assert line.startswith(f"suite: {tmp_path / 'texts'}: the training text has 10 different words")

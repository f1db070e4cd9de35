"""Penn Treebank, word level, from its three text files or a zip of them."""

import hashlib
from pathlib import Path

import numpy as np
import torch

from suite.config.experiment import PtbConfig
from suite.data.dataset import TextDataset
from suite.data.files import VARIABLE, Arrays, Source, cached, data_root, file_hash, opened_zip
from suite.errors import ConfigError

# Of the preparation by Mikolov et al. 2010: tokens of each text with its ends of lines, and words with that end.
SIZES = {"train": 929_589, "valid": 73_760, "test": 82_430}
VOCABULARY = 10_000
_END, _UNKNOWN = "<eos>", "<unk>"


def load_ptb(config: PtbConfig) -> TextDataset:
    """Words as they stand, a line's end as a token; the vocabulary is that of the training text, by first appearance.

    Raises:
        ConfigError: the texts are not there, cut short, or of another vocabulary.
    """
    arrays = cached("ptb", find_ptb(data_root()))
    train, tested = (torch.from_numpy(arrays[part]).long() for part in ("train", config.evaluate))
    vocabulary = tuple(arrays["vocabulary"].tobytes().decode().split("\n"))
    return TextDataset(
        train[: config.max_train_tokens],
        tested,
        vocabulary,
        config.sequence_length,
        shuffled=config.windows == "shuffled",
    )


def find_ptb(root: Path | None) -> Source:
    """The texts or the zip in the folder of data, unread.

    Raises:
        ConfigError: neither is there.
    """
    if root is None:
        raise ConfigError(
            f"Penn Treebank is not ours to download: name a folder with ptb.{{train,valid,test}}.txt, or a zip of "
            f"them, in the variable {VARIABLE} or with --data-root"
        )
    for folder in (root, root / "ptb"):
        if all(path.is_file() for path in _texts(folder)):
            return Source(folder, _identity, _from_texts)
    for path in sorted(root.glob("ptb*.zip")):
        return Source(path, file_hash, _from_zip)
    raise ConfigError(
        f"{root} holds no Penn Treebank: neither ptb.train.txt, ptb.valid.txt and ptb.test.txt nor a ptb*.zip of them; "
        f"correct {VARIABLE} or --data-root"
    )


def _texts(folder: Path) -> list[Path]:
    return [folder / f"ptb.{part}.txt" for part in SIZES]


def _identity(folder: Path) -> str:
    return hashlib.sha256("".join(file_hash(path) for path in _texts(folder)).encode()).hexdigest()


def _from_texts(folder: Path) -> Arrays:
    return _encode(folder, [path.read_bytes() for path in _texts(folder)])


def _from_zip(path: Path) -> Arrays:
    with opened_zip(path) as archive:
        inside = {name.rpartition("/")[2]: name for name in archive.namelist()}
        wanted = [f"ptb.{part}.txt" for part in SIZES]
        for name in wanted:
            if name not in inside:
                raise ConfigError(f"{path} does not hold {name}; copy it anew")
        return _encode(path, [archive.read(inside[name]) for name in wanted])


def _encode(source: Path, texts: list[bytes]) -> Arrays:
    """Token numbers int32 [n] of each text, and the vocabulary as bytes."""
    try:
        tokens = {part: _tokens(text.decode()) for part, text in zip(SIZES, texts, strict=True)}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: a text is not UTF-8 ({error}); copy it anew") from error
    number: dict[str, int] = {}
    for token in tokens["train"]:
        number.setdefault(token, len(number))
    if len(number) != VOCABULARY or _UNKNOWN not in number:
        raise ConfigError(
            f"{source}: the training text has {len(number):,} different words and Penn Treebank as prepared for "
            f"language models has {VOCABULARY:,} with {_UNKNOWN} and the end of a line; take that preparation, whole"
        )
    for part, text in tokens.items():
        strange = next((token for token in text if token not in number), None)
        if strange is not None:
            raise ConfigError(
                f"{source}: ptb.{part}.txt has the word '{strange}', which the training text lacks; the three texts "
                "must be of one preparation"
            )
        if len(text) != SIZES[part]:
            raise ConfigError(
                f"{source}: ptb.{part}.txt has {len(text):,} tokens with its ends of lines, not {SIZES[part]:,}; "
                "copy it anew, whole"
            )
    encoded = {part: np.array([number[token] for token in text], np.int32) for part, text in tokens.items()}
    return encoded | {"vocabulary": np.frombuffer("\n".join(number).encode(), np.uint8)}


def _tokens(text: str) -> list[str]:
    return [token for line in text.splitlines() if line.split() for token in (*line.split(), _END)]

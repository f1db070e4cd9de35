"""Penn Treebank, word level, from its three text files or a zip of them."""

import zipfile
from pathlib import Path

import numpy as np
import torch

from suite.config.experiment import PtbConfig
from suite.data.dataset import TextDataset
from suite.data.files import VARIABLE, cached, data_root, file_hash
from suite.errors import ConfigError

_PARTS = ("train", "valid", "test")
_END, _UNKNOWN = "<eos>", "<unk>"
# Of the preparation by Mikolov et al. 2010: words of the vocabulary with the end of a line.
_VOCABULARY = 10_000


def load_ptb(config: PtbConfig) -> TextDataset:
    """Words as they stand, a line's end as a token; the vocabulary is that of the training text, by first appearance.

    Raises:
        ConfigError: the texts are not there, cut short, or of another vocabulary.
    """
    source, build = _find()
    arrays = cached("ptb", source, build)
    train, tested = (torch.from_numpy(arrays[part]).long() for part in ("train", config.evaluate))
    vocabulary = tuple(arrays["vocabulary"].tobytes().decode().split("\n"))
    return TextDataset(
        train[: config.max_train_tokens], tested, vocabulary, config.sequence_length, shuffled=config.windows == "shuffled"
    )


def _find():
    root = data_root()
    if root is None:
        raise ConfigError(
            f"Penn Treebank is not ours to download: name a folder with ptb.{{train,valid,test}}.txt, or a zip of them, "
            f"in the variable {VARIABLE} or with --data-root"
        )
    for folder in (root, root / "ptb"):
        paths = [folder / f"ptb.{part}.txt" for part in _PARTS]
        if all(path.is_file() for path in paths):
            return _combined(paths), lambda: _encode(str(folder), [path.read_bytes() for path in paths])
    for path in sorted(root.glob("ptb*.zip")):
        return file_hash(path), lambda: _encode(str(path), _unzipped(path))
    raise ConfigError(
        f"{root} holds no Penn Treebank: neither ptb.train.txt, ptb.valid.txt and ptb.test.txt nor a ptb*.zip of them; "
        f"correct {VARIABLE} or --data-root"
    )


def _combined(paths: list[Path]) -> str:
    import hashlib

    return hashlib.sha256("".join(file_hash(path) for path in paths).encode()).hexdigest()


def _unzipped(path: Path) -> list[bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.rpartition("/")[2]: name for name in archive.namelist()}
            return [archive.read(inside[f"ptb.{part}.txt"]) for part in _PARTS]
    except KeyError as error:
        raise ConfigError(f"{path} does not hold {error.args[0]}; copy it anew") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ConfigError(f"{path} is damaged ({error}); copy it anew") from error


def _encode(source: str, texts: list[bytes]) -> dict[str, np.ndarray]:
    """Token numbers int32 [n] of each text, and the vocabulary as bytes."""
    try:
        tokens = {part: _tokens(text.decode()) for part, text in zip(_PARTS, texts, strict=True)}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: a text is not UTF-8 ({error}); copy it anew") from error
    number: dict[str, int] = {}
    for token in tokens["train"]:
        number.setdefault(token, len(number))
    if len(number) != _VOCABULARY or _UNKNOWN not in number:
        raise ConfigError(
            f"{source}: the training text has {len(number):,} different words and Penn Treebank as prepared for language "
            f"models has {_VOCABULARY:,} with {_UNKNOWN} and the end of a line; take that preparation, whole"
        )
    for part in _PARTS[1:]:
        strange = next((token for token in tokens[part] if token not in number), None)
        if strange is not None or len(tokens[part]) < _VOCABULARY:
            what = f"the word '{strange}', which the training text lacks" if strange else f"{len(tokens[part])} words only"
            raise ConfigError(f"{source}: ptb.{part}.txt has {what}; the three texts must be of one preparation, whole")
    encoded = {part: np.array([number[token] for token in of], np.int32) for part, of in tokens.items()}
    return encoded | {"vocabulary": np.frombuffer("\n".join(number).encode(), np.uint8)}


def _tokens(text: str) -> list[str]:
    return [token for line in text.splitlines() if line.split() for token in (*line.split(), _END)]

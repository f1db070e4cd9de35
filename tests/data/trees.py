"""Small data sets in the layouts of the real ones."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from suite.data.cifar10 import CLASSES

CIFAR_SIZES = {"train": 20, "test": 10}


def image_bytes(seed: int, width: int = 32, height: int = 32, kind: str = "JPEG", mode: str = "RGB") -> bytes:
    """A random image as a file's bytes."""
    values = np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(values).convert(mode).save(file, kind)
    return file.getvalue()


def write_image(path: Path, seed: int, **how) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(image_bytes(seed, **how))
    return path


def cifar_tree(folder: Path) -> Path:
    """Two training images and a test image a class."""
    for part, size in CIFAR_SIZES.items():
        for number in range(size):
            label = CLASSES[number % 10]
            write_image(folder / part / label / f"{number:04}.jpg", seed=1000 * (part == "test") + number)
    return folder


def zipped(folder: Path, path: Path) -> Path:
    """A zip of everything below a folder."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path


PTB_SIZES = {"train": 120, "valid": 40, "test": 50}
PTB_VOCABULARY = 10


def ptb_text(tokens: int, start: int) -> str:
    """Lines of four words and their end; the words of the vocabulary in turn."""
    words = ["<unk>", *(f"w{i}" for i in range(PTB_VOCABULARY - 2))]
    lines = [" ".join(words[(start + 4 * line + i) % len(words)] for i in range(4)) for line in range(tokens // 5)]
    return "".join(f" {line} \n" for line in lines)


def ptb_texts(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for start, (part, size) in enumerate(PTB_SIZES.items()):
        (folder / f"ptb.{part}.txt").write_text(ptb_text(size, start))
    return folder

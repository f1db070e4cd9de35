"""CIFAR-10, from its original archive, from a tree or zip of images, or downloaded by torchvision."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from suite.config.experiment import Cifar10Config
from suite.data.dataset import Augmentation, ImageDataset
from suite.data.files import VARIABLE, cache_root, cached, data_root, file_hash, tree_hash
from suite.errors import ConfigError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIZES = {"train": 50_000, "test": 10_000}
_ARCHIVE, _ARCHIVE_FOLDER = "cifar-10-python.tar.gz", "cifar-10-batches-py"
_IMAGE = re.compile(r"(?:^|/)(train|test)/([^/]+)/[^/]+\.(?:png|jpe?g|bmp)$", re.IGNORECASE)
_SIDE = 32
_PADDING = 4  # He et al. 2016, section 4.2

_Arrays = dict[str, np.ndarray]


def load_cifar10(config: Cifar10Config) -> ImageDataset:
    """Images uint8, scaled when they are taken to mean 0 and deviation 1 of each channel over the training images.

    Raises:
        ConfigError: the data are not there, incomplete, or damaged.
    """
    source, build = _find()
    arrays = {name: torch.from_numpy(array) for name, array in cached("cifar10", source, build).items()}
    mean, std = arrays["mean"].view(3, 1, 1), arrays["std"].view(3, 1, 1)
    taken = slice(config.max_train_samples)
    train = (arrays["train_images"][taken], arrays["train_labels"][taken])
    test = (arrays["test_images"], arrays["test_labels"])
    augmentation = Augmentation(_PADDING) if config.augment else None
    return ImageDataset(train, test, classes=len(CLASSES), scale=(mean, std), augmentation=augmentation)


def _find() -> tuple[str, Callable[[], _Arrays]]:
    """What identifies the data, and what decodes them."""
    root = data_root()
    if root is None:
        root = cache_root() / "downloads"
        if not (root / _ARCHIVE_FOLDER).is_dir():
            _download(root)
    if (root / _ARCHIVE_FOLDER).is_dir():
        return tree_hash(root / _ARCHIVE_FOLDER), lambda: _from_archive(root, unpack=False)
    if (root / _ARCHIVE).is_file():
        return file_hash(root / _ARCHIVE), lambda: _from_archive(root, unpack=True)
    for folder in (root, root / "cifar10", root / "cifar-10"):
        if (folder / "train").is_dir() and (folder / "test").is_dir():
            return tree_hash(folder), lambda: _from_tree(folder)
    for path in sorted(root.glob("cifar*.zip")):
        return file_hash(path), lambda: _from_zip(path)
    raise ConfigError(
        f"{root} holds no CIFAR-10: neither {_ARCHIVE} or {_ARCHIVE_FOLDER}/ nor train/CLASS/ and test/CLASS/ with images "
        f"nor a cifar*.zip of them; correct {VARIABLE}, or unset it to download the data"
    )


def _download(root: Path) -> None:
    from torchvision.datasets import CIFAR10

    try:
        CIFAR10(str(root), download=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"CIFAR-10 could not be downloaded ({error}); name a folder that holds it in the variable {VARIABLE} or with "
            "--data-root"
        ) from error


def _from_archive(root: Path, unpack: bool) -> _Arrays:
    """torchvision checks the checksum of each file, and unpacks the archive beside the decoded copies."""
    from torchvision.datasets import CIFAR10

    folder = root
    try:
        if unpack:
            from torchvision.datasets.utils import check_integrity, extract_archive

            folder = cache_root() / "downloads"
            if not check_integrity(str(root / _ARCHIVE), CIFAR10.tgz_md5):
                raise RuntimeError("its checksum is wrong")
            extract_archive(str(root / _ARCHIVE), str(folder))
        parts = {part: CIFAR10(str(folder), train=part == "train") for part in SIZES}
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        raise ConfigError(f"CIFAR-10's archive in {root} is damaged or incomplete ({error}); copy it anew") from error
    return _arrays({part: (of.data.transpose(0, 3, 1, 2), np.asarray(of.targets)) for part, of in parts.items()})


def _from_tree(folder: Path) -> _Arrays:
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*/*"))
    return _decoded(str(folder), paths, lambda name: (folder / name).read_bytes())


def _from_zip(path: Path) -> _Arrays:
    try:
        with zipfile.ZipFile(path) as archive:
            return _decoded(str(path), sorted(archive.namelist()), archive.read)
    except zipfile.BadZipFile as error:
        raise ConfigError(f"{path} is damaged ({error}); copy it anew") from error


def _decoded(source: str, names: Iterable[str], read: Callable[[str], bytes]) -> _Arrays:
    """Decode the images among `names`, sorted by name within a class; a class is a folder."""
    found: dict[str, list[tuple[str, int]]] = {part: [] for part in SIZES}
    for name in names:
        match = _IMAGE.search(name)
        if match is None:
            continue
        part, label = match[1].lower(), match[2]
        if label not in CLASSES:
            raise ConfigError(f"{source}: {name} is of no class of CIFAR-10, which are {', '.join(CLASSES)}")
        found[part].append((name, CLASSES.index(label)))
    for part, images in found.items():
        if len(images) != SIZES[part]:
            raise ConfigError(
                f"{source} holds {len(images):,} {part} images and CIFAR-10 has {SIZES[part]:,}; copy it anew"
            )

    def decode(name: str) -> np.ndarray:
        return _pixels(source, name, read(name))

    parts = {}
    for part, images in found.items():
        with ThreadPoolExecutor() as pool:
            pixels = np.stack(list(pool.map(decode, (name for name, _ in images))))
        parts[part] = (pixels.transpose(0, 3, 1, 2), np.array([label for _, label in images]))
    return _arrays(parts)


def _pixels(source: str, name: str, content: bytes) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            pixels = np.asarray(image.convert("RGB"))
    except OSError as error:
        raise ConfigError(f"{source}: {name} is no image ({error}); copy it anew") from error
    if pixels.shape != (_SIDE, _SIDE, 3):
        raise ConfigError(f"{source}: {name} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not {_SIDE} x {_SIDE}")
    return pixels


def _arrays(parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> _Arrays:
    """What is kept: images uint8 [n, 3, 32, 32], labels int64 [n], and the scale of each channel."""
    out = {}
    for part, (images, labels) in parts.items():
        out |= {f"{part}_images": images, f"{part}_labels": labels.astype(np.int64)}
    values = out["train_images"].astype(np.float32) / 255
    axes = (0, 2, 3)
    return out | {
        "mean": values.mean(axis=axes, dtype=np.float64).astype(np.float32),
        "std": values.std(axis=axes, dtype=np.float64).astype(np.float32),
    }

"""CIFAR-10, from its original archive, from a tree or zip of images, or downloaded by torchvision."""

import os
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch

from suite.config.experiment import Cifar10Config
from suite.data.dataset import Augmentation, ImageDataset
from suite.data.decode import rgb_image
from suite.data.files import (
    VARIABLE,
    Arrays,
    Source,
    cache_root,
    cached,
    data_root,
    file_hash,
    locked,
    opened_zip,
    told,
    tree_hash,
)
from suite.errors import ConfigError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIZES = {"train": 50_000, "test": 10_000}
_ARCHIVE, _ARCHIVE_FOLDER = "cifar-10-python.tar.gz", "cifar-10-batches-py"
# A name that begins with a dot is some system's note beside an image.
_IMAGE = re.compile(r"(?:^|/)(train|test)/([^/]+)/[^/.][^/]*\.(?:png|jpe?g|bmp)$", re.IGNORECASE)
_SIDE = 32
_PADDING = 4  # He et al. 2016, section 4.2


def load_cifar10(config: Cifar10Config) -> ImageDataset:
    """Images uint8, scaled when they are taken to mean 0 and deviation 1 of each channel over the training images.

    Raises:
        ConfigError: the data are not there, incomplete, or damaged.
    """
    source = find_cifar10(data_root()) or _downloaded()
    arrays = {name: torch.from_numpy(array) for name, array in cached("cifar10", source).items()}
    mean, std = arrays["mean"].view(3, 1, 1), arrays["std"].view(3, 1, 1)
    taken = slice(config.max_train_samples)
    train = (arrays["train_images"][taken], arrays["train_labels"][taken])
    test = (arrays["test_images"], arrays["test_labels"])
    augmentation = Augmentation(_PADDING) if config.augment else None
    return ImageDataset(train, test, classes=len(CLASSES), scale=(mean, std), augmentation=augmentation)


def find_cifar10(root: Path | None) -> Source | None:
    """The first of the accepted layouts in the folder of data, unread; None where nobody named one: it is downloaded.

    Raises:
        ConfigError: there is none.
    """
    if root is None:
        return None
    folder, archive = root / _ARCHIVE_FOLDER, root / _ARCHIVE
    if folder.is_dir():
        return Source(folder, tree_hash, _from_archive)
    if archive.is_file():
        return Source(archive, file_hash, _from_packed)
    for tree in (root, root / "cifar10", root / "cifar-10"):
        if (tree / "train").is_dir() and (tree / "test").is_dir():
            return Source(tree, tree_hash, _from_tree)
    for path in sorted(root.glob("cifar*.zip")):
        return Source(path, file_hash, _from_zip)
    raise ConfigError(
        f"{root} holds no CIFAR-10: neither {_ARCHIVE} or {_ARCHIVE_FOLDER}/ nor train/CLASS/ and test/CLASS/ with "
        f"images nor a cifar*.zip of them; correct {VARIABLE} or --data-root, or leave both out to download the data"
    )


def _downloaded() -> Source:
    """The original archive in the cache, there after this if not before."""
    from torchvision.datasets import CIFAR10

    root = cache_root() / "downloads"
    with locked(root.with_suffix(".lock")):
        try:
            if not (root / _ARCHIVE_FOLDER).is_dir():
                CIFAR10(str(root), download=True)
        except (OSError, RuntimeError) as error:
            raise ConfigError(
                f"CIFAR-10 could not be downloaded ({error}); name a folder that holds it in the variable {VARIABLE} "
                "or with --data-root"
            ) from error
    return find_cifar10(root)


def _from_packed(archive: Path) -> Arrays:
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import check_integrity, extract_archive

    if not check_integrity(str(archive), CIFAR10.tgz_md5):
        raise ConfigError(f"{archive} has a wrong checksum, so it is damaged or cut short; copy it anew")
    with tempfile.TemporaryDirectory(dir=cache_root()) as folder:
        extract_archive(str(archive), folder)
        return _from_archive(Path(folder) / _ARCHIVE_FOLDER)


def _from_archive(folder: Path) -> Arrays:
    """From the unpacked archive; the checksums are those torchvision knows."""
    from torchvision.datasets import CIFAR10
    from torchvision.datasets.utils import check_integrity

    for name, checksum in [*CIFAR10.train_list, *CIFAR10.test_list, (CIFAR10.meta["filename"], CIFAR10.meta["md5"])]:
        path = folder / name
        if not check_integrity(str(path), checksum):
            what = "has a wrong checksum" if path.is_file() else "is missing"
            raise ConfigError(f"{path} {what}; unpack CIFAR-10's archive anew")
    parts = {part: CIFAR10(str(folder.parent), train=part == "train") for part in SIZES}
    return _arrays({part: (of.data.transpose(0, 3, 1, 2), np.asarray(of.targets)) for part, of in parts.items()})


def _from_tree(folder: Path) -> Arrays:
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*/*"))
    return _decoded(folder, paths, lambda name: (folder / name).read_bytes())


def _from_zip(path: Path) -> Arrays:
    with opened_zip(path) as archive:
        return _decoded(path, sorted(archive.namelist()), archive.read)


def _decoded(source: Path, names: Iterable[str], read: Callable[[str], bytes]) -> Arrays:
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
    pixels = {part: np.empty((len(images), 3, _SIDE, _SIDE), np.uint8) for part, images in found.items()}
    places = [(part, i, name) for part, images in found.items() for i, (name, _) in enumerate(images)]
    # One after the other: most of the time goes to Python, which threads would only share.
    for part, i, name in told(places, f"decoding {len(places):,} images of {os.path.basename(source)}"):
        pixels[part][i] = _pixels(f"{source}: {name}", read(name)).transpose(2, 0, 1)
    return _arrays({part: (pixels[part], np.array([label for _, label in found[part]])) for part in found})


def _pixels(where: str, content: bytes) -> np.ndarray:
    pixels = np.asarray(rgb_image(where, content))
    if pixels.shape != (_SIDE, _SIDE, 3):
        raise ConfigError(f"{where} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not {_SIDE} x {_SIDE}")
    return pixels


def _arrays(parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> Arrays:
    """What is kept: images uint8 [n, 3, 32, 32], labels int64 [n], and the scale of each channel."""
    out = {}
    for part, (images, labels) in parts.items():
        out |= {f"{part}_images": images, f"{part}_labels": labels.astype(np.int64)}
    mean, std = _scale(out["train_images"])
    return out | {"mean": mean, "std": std}


def _scale(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation float32 [channels] of images uint8 [n, channels, H, W], their values taken as 0 to 1."""
    values = np.arange(256, dtype=np.float32) / 255
    # Counted in parts, which keeps the memory small that counting takes.
    blocks = range(0, len(images), 5_000)
    counts = np.array(
        [
            sum(np.bincount(images[start : start + 5_000, channel].ravel(), minlength=256) for start in blocks)
            for channel in range(images.shape[1])
        ]
    )
    share = counts / counts.sum(axis=1, keepdims=True)
    mean = share @ values.astype(np.float64)
    variance = (share * (values - mean[:, None]) ** 2).sum(axis=1)
    return mean.astype(np.float32), np.sqrt(variance).astype(np.float32)

"""ImageNet, or any tree of images in its layout: decoded by background threads while training goes on."""

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from suite.config.experiment import ImageNetConfig
from suite.data.dataset import Batch, Epoch, SampleDataset, scaled
from suite.data.decode import rgb_image
from suite.data.files import VARIABLE, Arrays, Source, cached, data_root, told
from suite.errors import ConfigError, SuiteError

_PARTS = {"train": "train", "test": "val"}  # what a run calls them, and their folders
_KINDS = (".jpeg", ".jpg", ".png", ".bmp", ".webp")
# Mean and deviation of the channels, of values between 0 and 1, as torchvision's models for ImageNet take images.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Cropping as in Szegedy et al. 2015 (arXiv 1409.4842, section 6).
_AREA, _RATIO, _ATTEMPTS = (0.08, 1.0), (3 / 4, 4 / 3), 10
_CENTRE = 0.875  # share of the shorter side that the crop of a test image takes

Crop = tuple[int, int, int, int]  # top, left, height, width


def load_imagenet(config: ImageNetConfig) -> "ImageNet":
    """The list of images, kept as decoded data are; pixels are read when they are needed.

    Raises:
        ConfigError: there is no such tree, or its parts do not have the same classes.
    """
    source = find_imagenet(data_root())
    listed = cached("imagenet", source)
    parts = {part: Images(source.where / _PARTS[part], listed[part], listed[f"{part}_labels"]) for part in _PARTS}
    digest = hashlib.sha256()
    for name in sorted(listed):
        digest.update(listed[name].tobytes())
    return ImageNet(**parts, classes=len(listed["classes"]), digest=digest.hexdigest(), config=config)


def find_imagenet(root: Path | None) -> Source:
    """The tree in the folder of data, not yet listed.

    Raises:
        ConfigError: there is none.
    """
    if root is None:
        raise ConfigError(
            "ImageNet is not ours to download: name a folder with train/CLASS/IMAGE and val/CLASS/IMAGE in the "
            f"variable {VARIABLE} or with --data-root"
        )
    for folder in (root, root / "imagenet"):
        if all((folder / part).is_dir() for part in _PARTS.values()):
            return Source(folder, _identity, _list)
    raise ConfigError(
        f"{root} holds no ImageNet: neither in it nor in imagenet/ are train/CLASS/IMAGE and val/CLASS/IMAGE; correct "
        f"{VARIABLE} or --data-root"
    )


def _class_folders(part: Path) -> list[os.DirEntry]:
    with os.scandir(part) as entries:
        return sorted((e for e in entries if e.is_dir() and not e.name.startswith(".")), key=lambda e: e.name)


def _identity(folder: Path) -> str:
    """Changes when an image appears, goes or is renamed, which touches its class's folder; no image is looked at."""
    digest = hashlib.sha256(str(folder.resolve()).encode())
    for part in _PARTS.values():
        for entry in _class_folders(folder / part):
            digest.update(f"{part}/{entry.name}\0{entry.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _list(folder: Path) -> Arrays:
    """Names of classes; of all images, by class and name: name below the part's folder, size and label (int64)."""
    classes = {part: _class_folders(folder / below) for part, below in _PARTS.items()}
    names = {part: [entry.name for entry in entries] for part, entries in classes.items()}
    if not names["train"]:
        raise ConfigError(f"{folder / 'train'} holds no folders; a folder of images a class is needed")
    if names["train"] != names["test"]:
        odd = sorted(set(names["train"]) ^ set(names["test"]))[0]
        where = "train but not in val" if odd in names["train"] else "val but not in train"
        raise ConfigError(f"{folder} has class {odd} in {where}; both need the same classes")
    out: Arrays = {"classes": np.array([os.fsencode(name) for name in names["train"]])}
    for part, entries in classes.items():
        found = [
            (os.fsencode(f"{entry.name}/{image.name}"), image.stat().st_size, label)
            for label, entry in enumerate(told(entries, f"listing the images of {folder / _PARTS[part]}"))
            for image in _images(entry)
        ]
        paths, sizes, labels = zip(*found, strict=True)
        out |= {part: np.array(paths), f"{part}_sizes": np.array(sizes), f"{part}_labels": np.array(labels)}
    return out


def _images(folder: os.DirEntry) -> list[os.DirEntry]:
    with os.scandir(folder) as entries:
        found = sorted((e for e in entries if e.name.lower().endswith(_KINDS)), key=lambda e: e.name)
    if not found:
        raise ConfigError(f"{folder.path} holds no image ({', '.join(_KINDS)}); every class needs one")
    return found


@dataclass(frozen=True)
class Images:
    """Files of one part of the tree.

    Attributes:
        folder: of the part.
        names: below it, bytes [n].
        labels: int64 [n].
    """

    folder: Path
    names: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class ImageNet(SampleDataset):
    """Images on disk. Equal settings give equal batches, whatever the number of threads that prepare them.

    Attributes:
        train, test: what there is.
        digest: SHA-256 of all names, sizes and classes; pixels are not read for it.
        config: how images are cropped, and by how many threads.
    """

    train: Images
    test: Images
    classes: int
    digest: str
    config: ImageNetConfig
    device: torch.device = torch.device("cpu")
    unit: str = "samples"
    channels: int = 3

    @property
    def train_size(self) -> int:
        return len(self.train.names)

    @property
    def sha256(self) -> str:
        return self.digest

    def to(self, device: torch.device) -> "ImageNet":
        return replace(self, device=device)

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Started with the first batch."""
        return ThreadPoolExecutor(self.config.threads, thread_name_prefix="images")

    def epoch(self, seed: int, epoch: int, workers: int, batch: int, local: Iterable[int]) -> Epoch:
        return _ImageNetEpoch(self, (seed, epoch), self.epoch_order(seed, epoch, workers, batch).numpy(), list(local))

    def test_batches(self, size: int) -> Iterator[Batch]:
        places = [
            range(start, min(start + size, len(self.test.names))) for start in range(0, len(self.test.names), size)
        ]
        ahead = Ahead(places, lambda chosen: self._started(self.test, chosen), self._depth(size))
        for chosen in places:
            yield self._batch(ahead.take(chosen), self.test.labels[list(chosen)])

    def _depth(self, batch: int) -> int:
        """Batches to begin before they are needed: every thread has an image, and the next one waits."""
        return max(1, math.ceil(2 * self.config.threads / batch))

    def _started(self, part: Images, chosen: Sequence[int], draw: Sequence[int] | None = None) -> list[Future]:
        """One future pixels, uint8 [3, size, size], an image; random where the training's `draw` says how."""
        return [
            self.threads.submit(
                _pixels, part, int(number), self.config.image_size, None if draw is None else (*draw, position)
            )
            for position, number in enumerate(chosen)
        ]

    def _batch(self, pixels: list[np.ndarray], labels: np.ndarray) -> Batch:
        images = torch.from_numpy(np.stack(pixels)).to(self.device)
        mean, std = (torch.tensor(values, device=self.device).view(3, 1, 1) for values in (_MEAN, _STD))
        return scaled(images, mean, std), torch.from_numpy(labels).to(self.device)


class _ImageNetEpoch(Epoch):
    """One epoch: the coming batches of the local workers are begun in the order in which training takes them."""

    def __init__(self, dataset: ImageNet, seeds: tuple[int, int], order: np.ndarray, local: list[int]):
        self.dataset, self.seeds, self.order = dataset, seeds, order
        keys = [(iteration, worker) for iteration in range(len(order)) for worker in local]
        self.ahead = Ahead(keys, self._start, dataset._depth(order.shape[2]))

    def _start(self, key: tuple[int, int]) -> list[Future]:
        iteration, worker = key
        draw = (*self.seeds, worker, iteration) if self.dataset.config.augment else None
        return self.dataset._started(self.dataset.train, self.order[key], draw)

    def batch(self, worker: int, iteration: int) -> Batch:
        labels = self.dataset.train.labels[self.order[iteration, worker]]
        return self.dataset._batch(self.ahead.take((iteration, worker)), labels)


class Ahead:
    """Work that is begun before it is asked for.

    Args:
        keys: in the order in which they will be asked for; another order is slower, nothing else.
        start: begins the work of a key.
        depth: keys after the one asked for whose work is begun.
    """

    def __init__(self, keys: Sequence, start: Callable[..., list[Future]], depth: int):
        self.keys, self.start, self.depth = keys, start, depth
        self.place = {key: place for place, key in enumerate(keys)}
        self.begun: dict[object, list[Future]] = {}

    def take(self, key) -> list:
        """The results of a key's work, in order; its first error is raised here."""
        first = self.place[key]
        coming = self.keys[first : first + 1 + self.depth]
        self.begun = {each: self.begun[each] if each in self.begun else self.start(each) for each in coming}
        return [future.result() for future in self.begun.pop(key)]


def _pixels(part: Images, number: int, size: int, draw: tuple[int, ...] | None) -> np.ndarray:
    """One image, uint8 [3, size, size]."""
    from torchvision.transforms import functional as F

    path = part.folder / os.fsdecode(part.names[number])
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{path} cannot be read ({error.strerror}); copy it anew") from error
    image = rgb_image(str(path), content, failure=SuiteError)
    if draw is None:
        image = F.center_crop(F.resize(image, round(size / _CENTRE)), size)
    else:
        rng = np.random.default_rng([*draw, 0x1A6E])
        image = F.resized_crop(image, *random_crop(image.height, image.width, rng), [size, size])
        if rng.random() < 0.5:
            image = F.hflip(image)
    return np.asarray(image).transpose(2, 0, 1)


def random_crop(height: int, width: int, rng: np.random.Generator) -> Crop:
    """A crop of 8 to 100% of an image's area that is at most a third wider than high, or higher than wide.

    torchvision's own would draw from torch's global generator, whose numbers go to whichever thread comes first.
    """
    for _ in range(_ATTEMPTS):
        area = height * width * rng.uniform(*_AREA)
        ratio = math.exp(rng.uniform(*map(math.log, _RATIO)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1)), h, w
    # Nothing fitted into a very long image: the largest crop of allowed ratio from its middle.
    h, w = min(height, round(width / _RATIO[0])), min(width, round(height * _RATIO[1]))
    return (height - h) // 2, (width - w) // 2, h, w

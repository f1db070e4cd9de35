"""CIFAR-10 in every layout, and what is refused."""

import hashlib
import pickle
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from trees import CIFAR_SIZES, cifar_tree, write_image, zipped

from helpers import tiny_settings
from suite.config.experiment import Cifar10Config
from suite.data.cifar10 import CLASSES, load_cifar10
from suite.errors import ConfigError


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Thirty images make a whole data set."""
    monkeypatch.setattr("suite.data.cifar10.SIZES", CIFAR_SIZES)


def load(**settings):
    return load_cifar10(Cifar10Config(**settings))


def same(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip((*a.train, *a.test), (*b.train, *b.test), strict=True))


def test_a_tree(data):
    cifar_tree(data)
    (data / "notes.txt").write_text("not an image")
    (data / "train" / "ship" / "._0008.jpg").write_bytes(b"left by a file manager")
    found = load()
    assert found.train[0].shape == (20, 3, 32, 32) and found.train[0].dtype == torch.uint8
    assert found.train[1].tolist() == [label for label in range(10) for _ in range(2)]
    assert found.test[1].tolist() == list(range(10)) and found.train_size == 20
    assert (found.classes, found.channels, found.augmentation.padding) == (10, 3, 4)
    assert load(max_train_samples=7).train_size == 7 and load(augment=False).augmentation is None


@pytest.mark.parametrize("below", ["", "cifar10", "cifar-10"])
def test_the_tree_may_lie_in_a_folder_of_its_name(data, below: str):
    cifar_tree(data / below)
    assert load().train_size == 20


@pytest.mark.parametrize("inside", ["", "CIFAR"])
def test_a_zip_of_a_tree_is_the_tree(data, tmp_path, inside: str):
    cifar_tree(tmp_path / "tree" / inside)
    zipped(tmp_path / "tree", data / "cifar10-jpeg.zip")
    from_zip = load()
    shutil.copytree(tmp_path / "tree" / inside, data, dirs_exist_ok=True)
    assert same(from_zip, load())


def test_images_are_taken_at_mean_0_and_deviation_1(data):
    cifar_tree(data)
    found = load()
    taken = found.scaled(found.train[0])
    torch.testing.assert_close(taken.mean(dim=(0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(taken.std(dim=(0, 2, 3), correction=0), torch.ones(3))
    exact = found.train[0].double() / 255
    torch.testing.assert_close(found.scale[0].flatten().double(), exact.mean(dim=(0, 2, 3)))


def test_png_and_grey_images_are_read_as_red_green_and_blue(data):
    cifar_tree(data)
    write_image(data / "train" / "cat" / "0003.jpg", 5, kind="PNG", mode="L")
    images, labels = load().train
    grey = images[labels == 3][0]
    assert torch.equal(grey[0], grey[1]) and torch.equal(grey[1], grey[2])


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(match: str) -> None:
    with pytest.raises(ConfigError, match=match) as caught:
        load()
    assert "\n" not in str(caught.value)


def test_no_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SUITE_DATA", str(tmp_path / "nowhere"))
    refused("there is no folder of data .*nowhere; correct --data-root or the variable SUITE_DATA")


def test_an_empty_folder(data):
    refused("holds no CIFAR-10: neither cifar-10-python.tar.gz .* nor train/CLASS/")


def test_a_missing_image(data):
    cifar_tree(data)
    (data / "test" / "dog" / "0005.jpg").unlink()
    refused("holds 9 test images and CIFAR-10 has 10; copy it anew")


def test_an_unknown_class(data):
    cifar_tree(data)
    (data / "train" / "ship").rename(data / "train" / "boat")
    refused("train/boat/0008.jpg is of no class of CIFAR-10, which are airplane, ")


def test_an_image_of_another_size(data):
    cifar_tree(data)
    write_image(data / "train" / "cat" / "0013.jpg", 5, width=48, height=40)
    refused("train/cat/0013.jpg has 48 x 40 pixels, not 32 x 32")


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("damage", ["text", "half", "empty"])
def test_a_file_that_is_no_image(data, kind: str, damage: str):
    cifar_tree(data)
    path = write_image(data / "train" / "cat" / "0013.jpg", 5, kind=kind)
    content = path.read_bytes()
    path.write_bytes({"text": b"hello", "half": content[: len(content) // 2], "empty": b""}[damage])
    refused("train/cat/0013.jpg is no readable image .*; copy it anew")


def test_a_truncated_zip(data, tmp_path):
    path = zipped(cifar_tree(tmp_path / "tree"), data / "cifar.zip")
    path.write_bytes(path.read_bytes()[:-100])
    refused("cifar.zip is damaged .*; copy it anew")


def test_a_zip_with_a_changed_byte(data, tmp_path):
    path = zipped(cifar_tree(tmp_path / "tree"), data / "cifar.zip")
    content = bytearray(path.read_bytes())
    content[400] ^= 0xFF
    path.write_bytes(content)
    refused("cifar.zip is damaged|is no readable image")


def test_a_failing_disk(data, tmp_path, tiny, monkeypatch):
    from suite.data import load_dataset

    def fail(path):
        raise OSError(5, "Input/output error", str(path))

    zipped(cifar_tree(tmp_path / "tree"), data / "cifar.zip")
    monkeypatch.setattr("suite.data.cifar10.file_hash", fail)
    with pytest.raises(ConfigError, match="the data of cifar10 in .* cannot be read .*Input/output error"):
        load_dataset(tiny(model={"name": "resnet20"}, data={"name": "cifar10"}))


def test_no_folder_and_no_network(monkeypatch):
    def fail(*arguments, **options):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("torchvision.datasets.CIFAR10.__init__", fail)
    refused("CIFAR-10 could not be downloaded .Network is unreachable.; name a folder that holds it")


def test_the_command_line_says_it_in_one_line(suite_command, tmp_path):
    """The sizes of the real set hold here, so that a small tree is incomplete."""
    cifar_tree(tmp_path / "images")
    settings = tiny_settings() | {"model": {"name": "resnet20"}, "data": {"name": "cifar10"}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    result = suite_command("train", "config.yaml", "--data-root", "images", "--out", "run")
    assert result.returncode == 2 and not (tmp_path / "run").exists()
    assert [line for line in result.stderr.splitlines() if line] == [
        f"suite: {tmp_path / 'images'} holds 20 train images and CIFAR-10 has 50,000; copy it anew"
    ]
    result = suite_command("train", "config.yaml", "--data-root", "elsewhere", "--out", "run")
    assert result.returncode == 2 and "suite: there is no folder of data" in result.stderr


# -- the original archive, with checksums that fit ---------------------------------------------------------------------


@pytest.fixture
def archive(data, monkeypatch) -> Path:
    """Its unpacked folder: two training batches, as torchvision would find them if these were the real checksums."""
    from torchvision.datasets import CIFAR10

    folder = data / "cifar-10-batches-py"
    folder.mkdir()
    rng = np.random.default_rng(0)

    def write(name: str, content: dict) -> str:
        (folder / name).write_bytes(pickle.dumps(content))
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    def batch(name: str) -> list[str]:
        values = {"data": rng.integers(256, size=(10, 3072), dtype=np.uint8), "labels": list(range(10))}
        return [name, write(name, values)]

    monkeypatch.setattr(CIFAR10, "train_list", [batch("data_batch_1"), batch("data_batch_2")])
    monkeypatch.setattr(CIFAR10, "test_list", [batch("test_batch")])
    sums = write("batches.meta", {"label_names": list(CLASSES)})
    monkeypatch.setattr(CIFAR10, "meta", {"filename": "batches.meta", "key": "label_names", "md5": sums})
    return folder


def test_the_unpacked_archive(archive):
    found = load()
    stored = [pickle.loads((archive / f"data_batch_{i}").read_bytes())["data"] for i in (1, 2)]
    assert torch.equal(found.train[0], torch.from_numpy(np.concatenate(stored).reshape(20, 3, 32, 32)))
    assert found.train[1].tolist() == 2 * list(range(10)) and len(found.test[0]) == 10


def packed(archive: Path, monkeypatch) -> Path:
    path = archive.parent / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(archive, archive.name)
    shutil.rmtree(archive)
    monkeypatch.setattr("torchvision.datasets.CIFAR10.tgz_md5", hashlib.md5(path.read_bytes()).hexdigest())
    return path


def test_the_packed_archive_is_unpacked_for_the_while(archive, cache, monkeypatch):
    unpacked = load()
    packed(archive, monkeypatch)
    assert same(unpacked, load())
    assert {path.name.partition("-")[0] for path in cache.iterdir()} == {"cifar10"}


def test_a_packed_archive_cut_short(archive, monkeypatch):
    path = packed(archive, monkeypatch)
    path.write_bytes(path.read_bytes()[:-50])
    refused("cifar-10-python.tar.gz has a wrong checksum, so it is damaged or cut short; copy it anew")


def test_a_wrong_checksum(archive):
    with open(archive / "data_batch_2", "r+b") as file:
        file.write(b"\0")
    refused("data_batch_2 has a wrong checksum; unpack CIFAR-10's archive anew")


def test_a_missing_batch(archive):
    (archive / "data_batch_2").unlink()
    refused("data_batch_2 is missing; unpack CIFAR-10's archive anew")

"""A tree of images decoded on the way: the same batches whatever the threads, and what is refused."""

import shutil
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms
from trees import write_image

from suite.config.experiment import ImageNetConfig
from suite.data import load_dataset
from suite.data.imagenet import Ahead, load_imagenet, random_crop
from suite.errors import ConfigError, SuiteError
from training import summary_of, trainer

CLASSES = ("n01", "n02", "n03")
SIDE = 32


def image_tree(folder: Path) -> Path:
    """Eight training and three test images a class, of all sizes and kinds."""
    for part, count in (("train", 8), ("val", 3)):
        for label, name in enumerate(CLASSES):
            for number in range(count):
                seed = 100 * label + number + 50 * (part == "val")
                how = {"width": 30 + 7 * number, "height": 75 - 5 * number}
                if number == 2:
                    how |= {"kind": "PNG", "mode": "L"}
                write_image(folder / part / name / f"{name}_{number}.{'png' if number == 2 else 'JPEG'}", seed, **how)
    (folder / "train" / "n01" / "readme.txt").write_text("not an image")
    return folder


@pytest.fixture
def tree(data) -> Path:
    return image_tree(data)


def load(**given):
    return load_imagenet(ImageNetConfig(**{"image_size": SIDE, "threads": 2} | given))


def batches(dataset, seed=0, epoch=0, local=(0, 1, 2), first=0) -> dict[tuple[int, int], torch.Tensor]:
    """By worker and iteration, of 3 workers with 2 images each."""
    found = dataset.epoch(seed, epoch, 3, 2, local)
    places = [(worker, i) for i in range(first, dataset.iterations(3, 2)) for worker in local]
    return {place: found.batch(*place)[0] for place in places}


def same(some: dict, others: dict) -> bool:
    return all(torch.equal(some[key], others[key]) for key in others)


@pytest.mark.parametrize("below", ["", "imagenet"])
def test_what_is_there(data, below: str):
    image_tree(data / below)
    found = load()
    assert (found.train_size, found.classes, found.channels, found.unit) == (24, 3, 3, "samples")
    assert (found.iterations(3, 2), found.dropped(5, 2)) == (4, 4)
    images, labels = found.epoch(0, 0, 3, 2, [1]).batch(1, 2)
    assert images.shape == (2, 3, SIDE, SIDE) and images.dtype == torch.float32
    order = found.epoch_order(0, 0, 3, 2)[2, 1]
    assert labels.dtype == torch.int64 and torch.equal(labels, order // 8)


def test_batches_do_not_depend_on_threads_placement_or_where_a_run_resumes(tree):
    one = batches(load(threads=1))
    assert same(one, batches(load(threads=5))) and same(one, batches(load()))
    assert same(one, batches(load(), local=[1])) and same(one, batches(load(), first=2))


def test_batches_are_a_function_of_seed_epoch_and_worker(tree):
    one = batches(load())
    for other in (batches(load(), seed=1), batches(load(), epoch=1)):
        assert not any(torch.equal(one[key], other[key]) for key in one)


def test_without_augmentation_images_are_scaled_and_cropped_in_the_middle(tree):
    """As in torchvision's references for ImageNet: shorter side to size / 0.875, centre crop, mean and deviation."""
    found = load(augment=False)
    reference = transforms.Compose([
        transforms.Resize(round(SIDE / 0.875)), transforms.CenterCrop(SIDE), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ])  # fmt: skip
    paths = sorted(path for path in (tree / "train").rglob("*") if path.suffix in (".JPEG", ".png"))
    order = found.epoch_order(0, 0, 3, 2)
    for (worker, iteration), images in batches(found).items():
        for image, number in zip(images, order[iteration, worker].tolist(), strict=True):
            torch.testing.assert_close(image, reference(Image.open(paths[number]).convert("RGB")), atol=1e-5, rtol=1e-5)


def test_test_images_come_in_order_and_all_of_them(tree):
    found = list(load().test_batches(4))
    assert [len(labels) for _, labels in found] == [4, 4, 1]
    assert torch.cat([labels for _, labels in found]).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    again = torch.cat([images for images, _ in load(threads=1).test_batches(2)])
    assert torch.equal(torch.cat([images for images, _ in found]), again)


def test_augmented_images_are_crops_of_their_image(tree):
    """An image of one colour stays so, in every crop and mirrored."""
    for path in (tree / "train").rglob("*.*"):
        if path.suffix in (".JPEG", ".png"):
            label = CLASSES.index(path.parent.name)
            Image.new("RGB", (60, 40), (80 * label, 10, 10)).save(path, "PNG")
    found = load()
    epoch, order = found.epoch(0, 0, 3, 2, [0]), found.epoch_order(0, 0, 3, 2)
    for iteration in range(4):
        images, labels = epoch.batch(0, iteration)
        red = (images[:, 0] * 0.229 + 0.485) * 255
        torch.testing.assert_close(red, (80.0 * labels)[:, None, None].expand_as(red), atol=1e-3, rtol=0)
        assert torch.equal(labels, order[iteration, 0] // 8)


@given(height=st.integers(1, 600), width=st.integers(1, 600), seed=st.integers(0, 999))
@settings(max_examples=200)
def test_a_random_crop_lies_in_the_image(height: int, width: int, seed: int):
    top, left, h, w = random_crop(height, width, np.random.default_rng(seed))
    assert 0 <= top and 0 <= left and 0 < h <= height - top and 0 < w <= width - left
    if 0.5 < height / width < 2 and min(height, width) > 50:
        assert 0.07 < h * w / (height * width) <= 1.001 and 0.72 < w / h < 1.4


def test_random_crops_are_spread_as_torchvisions():
    rng, image = np.random.default_rng(0), torch.empty(3, 300, 400)
    torch.manual_seed(0)
    ours = np.array([random_crop(300, 400, rng) for _ in range(3000)])
    theirs = np.array(
        [transforms.RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(3000)]
    )
    for column in range(4):
        a, b = ours[:, column], theirs[:, column]
        assert abs(a.mean() - b.mean()) < 5 * (a.var() / 3000 + b.var() / 3000) ** 0.5
        assert a.std() == pytest.approx(b.std(), rel=0.1)


def test_a_very_long_image_is_cropped_in_its_middle():
    assert random_crop(10, 5000, np.random.default_rng(0)) == (0, 2493, 10, 13)


def test_a_listing_is_kept_until_an_image_appears(tree, cache):
    first = load()
    assert load().sha256 == first.sha256 and len([path for path in cache.iterdir() if path.is_dir()]) == 1
    write_image(tree / "train" / "n02" / "new.JPEG", 7)
    assert load().train_size == 25 and load().sha256 != first.sha256


def test_the_hash_sees_a_renamed_class(tree):
    first = load().sha256
    for part in ("train", "val"):
        (tree / part / "n03").rename(tree / part / "n04")
    assert load().sha256 != first


def test_a_run_trains_on_it(tree, tiny, tmp_path):
    config = tiny(
        model={"name": "resnet20"},
        data={"name": "imagenet", "image_size": SIDE, "threads": 2},
        world={"workers": 3},
        train={"epochs": 2, "batch_size": 2, "max_iterations": 6},
    )
    trainer(config, tmp_path / "run").run()
    summary = summary_of(tmp_path / "run")
    assert summary["iterations"] == 6 and summary["data_sha256"] == load_dataset(config).sha256


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(match: str) -> None:
    with pytest.raises(ConfigError, match=match) as caught:
        load()
    assert "\n" not in str(caught.value)


def test_no_folder():
    refused("ImageNet is not ours to download: name a folder with train/CLASS/IMAGE and val/CLASS/IMAGE")


def test_one_part_is_missing(tree):
    shutil.rmtree(tree / "val")
    refused("holds no ImageNet: neither in it nor in imagenet/ are")


def test_images_without_classes(tree):
    shutil.rmtree(tree / "train")
    write_image(tree / "train" / "a.JPEG", 0)
    refused("train holds no folders; a folder of images a class is needed")


@pytest.mark.parametrize("part, where", [("train", "val but not in train"), ("val", "train but not in val")])
def test_classes_differ(tree, part: str, where: str):
    shutil.rmtree(tree / part / "n02")
    refused(f"has class n02 in {where}; both need the same classes")


def test_an_empty_class(tree):
    for path in (tree / "val" / "n02").iterdir():
        path.unlink()
    refused(r"val/n02 holds no image \(.jpeg, .*\); every class needs one")


@pytest.mark.parametrize("damage", ["text", "half", "gone"])
def test_a_damaged_image_ends_the_run_by_its_name(tree, damage: str):
    found = load(threads=3)
    path = tree / "train" / "n02" / "n02_4.JPEG"
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(b"hello" if damage == "text" else content[: len(content) // 2])
    with pytest.raises(SuiteError, match=r"n02_4.JPEG (is no readable image|cannot be read) \(.*\); copy it anew"):
        batches(found)


# -- the order of work -------------------------------------------------------------------------------------------------


def test_coming_work_is_begun_in_order_and_once():
    begun = []

    def start(key):
        begun.append(key)
        future: Future = Future()
        future.set_result(10 * key)
        return [future]

    ahead = Ahead(range(6), start, depth=2)
    assert ahead.take(0) == [0] and begun == [0, 1, 2]
    assert ahead.take(1) == [10] and begun == [0, 1, 2, 3]
    assert ahead.take(4) == [40] and begun == [0, 1, 2, 3, 4, 5]
    assert ahead.take(4) == [40] and begun[6:] == [4] and ahead.take(5) == [50] and begun[7:] == []

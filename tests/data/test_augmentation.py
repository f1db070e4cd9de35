"""Cropping and mirroring against one image at a time, and of what the random draws are a function."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchvision.transforms import functional as F

from suite.data.dataset import Augmentation, ImageDataset


def random_images(seed: int, count: int, channels: int = 3, height: int = 8, width: int = 8) -> torch.Tensor:
    values = np.random.default_rng(seed).integers(256, size=(count, channels, height, width), dtype=np.uint8)
    return torch.from_numpy(values)


@given(
    seed=st.integers(0, 99),
    count=st.integers(1, 6),
    channels=st.sampled_from([1, 3]),
    padding=st.integers(0, 5),
    shape=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    worker=st.integers(0, 15),
)
@settings(max_examples=60)
def test_a_batch_is_cropped_and_mirrored_image_by_image(seed, count, channels, padding, shape, worker):
    images, augmentation = random_images(seed, count, channels, *shape), Augmentation(padding)
    drawn = augmentation.draw(seed, 3, worker, (2, count))[:, 1]
    found = augmentation.apply(images, drawn)
    for image, (top, left, mirrored), ours in zip(images, drawn.T.tolist(), found, strict=True):
        expected = F.crop(F.pad(image, [padding] * 4), top, left, *shape)
        assert torch.equal(ours, F.hflip(expected) if mirrored else expected)


def test_every_place_and_both_sides_are_drawn_alike():
    rows, columns, mirrored = Augmentation(4).draw(0, 0, 0, (100, 90))
    for drawn, values in ((rows, 9), (columns, 9), (mirrored, 2)):
        counts = torch.bincount(drawn.flatten(), minlength=values)
        assert len(counts) == values
        # Five deviations of a binomial count.
        assert (counts - 9000 / values).abs().max() < 5 * (9000 / values) ** 0.5


def a_dataset() -> ImageDataset:
    labels = torch.arange(48) % 5
    scale = (torch.full((3, 1, 1), 0.5), torch.full((3, 1, 1), 0.25))
    return ImageDataset(
        (random_images(1, 48), labels), (random_images(2, 7), labels[:7]), 5, scale=scale, augmentation=Augmentation(2)
    )


def epochs(data: ImageDataset, seed: int, epoch: int, local: list[int]) -> dict[tuple[int, int], torch.Tensor]:
    found = data.epoch(seed, epoch, workers=4, batch=3, local=local)
    return {(worker, i): found.batch(worker, i)[0] for worker in local for i in range(data.iterations(4, 3))}


def test_batches_are_a_function_of_seed_epoch_and_worker():
    data = a_dataset()
    first, again = epochs(data, 0, 0, [0, 1, 2, 3]), epochs(data, 0, 0, [0, 1, 2, 3])
    assert all(torch.equal(first[key], again[key]) for key in first)
    for other in (epochs(data, 1, 0, [0, 1]), epochs(data, 0, 1, [0, 1])):
        assert not any(torch.equal(first[key], other[key]) for key in other)


def test_batches_do_not_depend_on_who_else_is_local():
    """Workers move between processes, and a resume begins in the middle of an epoch."""
    data = a_dataset()
    everywhere, alone = epochs(data, 5, 2, [0, 1, 2, 3]), epochs(data, 5, 2, [2])
    assert all(torch.equal(everywhere[key], alone[key]) for key in alone)
    assert torch.equal(data.epoch(5, 2, 4, 3, [2]).batch(2, 3)[0], alone[2, 3])


def test_two_workers_crop_differently():
    """Each draws for itself: the same samples in the same places would otherwise be cropped alike."""
    drawn = [Augmentation(4).draw(0, 0, worker, (4, 4)) for worker in range(4)]
    assert len({tuple(of.flatten().tolist()) for of in drawn}) == 4


def test_labels_belong_to_their_images_and_test_images_stay_as_they_are():
    data = replace(a_dataset(), augmentation=None)
    order = data.epoch_order(0, 0, 4, 3)
    images, labels = data.epoch(0, 0, 4, 3, [1]).batch(1, 2)
    assert torch.equal(labels, data.train[1][order[2, 1]])
    assert torch.equal(images, data.scaled(data.train[0][order[2, 1]]))
    tested = list(a_dataset().test_batches(3))
    assert [len(labels) for _, labels in tested] == [3, 3, 1]
    assert torch.equal(torch.cat([images for images, _ in tested]), data.scaled(data.test[0]))

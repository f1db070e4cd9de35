"""Which BatchNorm statistics a test is made with, and what travels for them."""

import pickle

import pytest
import torch

from training import trainer

RESNET = {"model": {"name": "resnet20"}, "data": {"name": "digits"}, "method": "dense"}


@pytest.mark.parametrize("batchnorm", ["average", "worker0"])
def test_statistics_are_the_chosen_workers(tiny, tmp_path, batchnorm: str):
    train = {"max_iterations": 1, "batch_size": 2, "batchnorm": batchnorm}
    run = trainer(tiny(**RESNET, train=train), tmp_path)
    gathered, gather = [], run.world.transport.gather_objects

    def measure(values):
        gathered.append(len(pickle.dumps(values)))
        return gather(values)

    run.world.transport.gather_objects = measure
    run.task.start_epoch(0, run.workers)
    run._iterate(0, 0)
    gathered.clear()
    run._adopt_statistics()
    own = sum(vector.nbytes for worker in run.workers for vector in worker.statistics)
    assert own < gathered[0] < 1.5 * own
    for name, buffer in run.flat.buffers.items():
        everyone = torch.stack([worker.buffers[name].double() for worker in run.workers])
        expected = everyone[0] if batchnorm == "worker0" else everyone.mean(dim=0)
        assert torch.equal(buffer, expected.to(buffer.dtype)), name

"""The worker owns everything random or stateful."""

import torch
from torch import nn

from suite.world.worker import FlatParameters, Worker


def model_with_dropout() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))


def step(worker: Worker, x: torch.Tensor) -> torch.Tensor:
    with worker.computing() as model:
        model(x).square().sum().backward()
    torch.cat([parameter.grad.flatten() for parameter in model.parameters()], out=worker.accumulated)
    return worker.accumulated.clone()


def test_a_workers_numbers_do_not_depend_on_its_neighbours():
    x = torch.randn(3, 5, 6)
    flat = FlatParameters(model_with_dropout())
    alone = [Worker(1, 7, flat, True)]
    together = [Worker(index, 7, flat, True) for index in range(3)]
    for _ in range(3):
        expected = step(alone[0], x[1])
        found = [step(worker, x[worker.index]) for worker in together]
        assert torch.equal(found[1], expected) and not torch.equal(found[0], found[1])
    assert torch.equal(together[1].buffers["1.running_mean"], alone[0].buffers["1.running_mean"])
    assert not torch.equal(together[0].buffers["1.running_mean"], together[1].buffers["1.running_mean"])


def test_computing_leaves_the_processes_random_state_alone():
    flat = FlatParameters(model_with_dropout())
    before = torch.get_rng_state()
    step(Worker(0, 0, flat, False), torch.randn(4, 6, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(torch.get_rng_state(), before)


def test_state_goes_round_trip():
    flat = FlatParameters(model_with_dropout())
    worker, other = Worker(0, 0, flat, True), Worker(0, 99, flat, True)
    x = torch.randn(5, 6)
    step(worker, x)
    worker.keep_unsent()
    other.load_state_dict(worker.state_dict())
    assert torch.equal(step(worker, x), step(other, x))
    assert torch.equal(worker.residual, other.residual) and worker.residual.any()


def test_keeping_is_a_swap_without_copying():
    worker = Worker(0, 0, FlatParameters(model_with_dropout()), True)
    accumulated, residual = worker.accumulated, worker.residual
    worker.keep_unsent()
    assert worker.residual is accumulated and worker.accumulated is residual

"""What compressors remember is in the checkpoint, and only kept when an iteration counts."""

import math
from typing import Any

import pytest
import torch

from helpers import step_beside
from training import trainer

METHODS = {
    "wangni": {"density": 0.05},
    "topk": {"density": 0.05},
    "gtopk": {"density": 0.05},
    "rtopk": {"density": 0.05},
    "mem_sgd": {"density": 0.05, "selection": "random"},
    "dgc": {"density": 0.05},
    "power_sgd": {"rank": 2},
    "acp_sgd": {"rank": 2},
}


def same(a: Any, b: Any) -> bool:
    """Equality of nested states, tensors bit for bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def state_of(run) -> list[dict]:
    return [worker.state_dict() for worker in run.workers]


@pytest.mark.parametrize("name", METHODS)
def test_resuming_is_bit_exact(tiny, tmp_path, name: str):
    """An odd number of iterations before the break, so that alternating methods go on with the other factor."""

    def run_to(last: int, folder: str):
        train = {"batch_size": 2, "checkpoint_every": 5, "max_iterations": last}
        method = {"name": name} | METHODS[name]
        run = trainer(tiny(method=method, optimizer=step_beside(name), train=train), tmp_path / folder)
        run.run()
        return run

    straight = run_to(10, "straight")
    run_to(5, "broken")
    resumed = run_to(10, "broken")
    assert resumed.resumed_at == [5] and torch.equal(straight.flat.vector, resumed.flat.vector)
    assert same(state_of(straight), state_of(resumed))
    assert straight.world.bytes_sent == resumed.world.bytes_sent
    assert straight.world.rounds == resumed.world.rounds == (20 if name == "power_sgd" else 10)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_skipped_iteration_is_forgotten(tiny, tmp_path, name: str, bad: float):
    method = {"name": name} | METHODS[name]
    run = trainer(tiny(method=method, optimizer=step_beside(name), train={"max_iterations": 5}), tmp_path)
    taking, iterate, states = run.exchange._take, run._iterate, {}

    def take(parameter, number):
        if run.exchange._receiver == 2 and run.iteration == 3 and number == 1:
            parameter.grad.view(-1)[-1] = bad
        taking(parameter, number)

    def remember(epoch, number):
        result = iterate(epoch, number)
        states[run.iteration] = (
            run.flat.vector.clone(), [w.residual if w.residual is None else w.residual.clone() for w in run.workers],
            [worker.compressor for worker in run.workers],
        )  # fmt: skip
        return result

    run.exchange._take, run._iterate = take, remember
    run.run()
    assert run.skipped == 1 and same(states[2], states[3]) and not same(states[3][0], states[4][0])
    assert torch.isfinite(run.flat.vector).all()
    assert all(w.residual is None or torch.isfinite(w.residual).all() for w in run.workers)
    if "rank" in METHODS[name] or name == "dgc":
        assert not same(states[3][2], states[4][2])


@pytest.mark.parametrize("name", ["power_sgd", "acp_sgd"])
def test_messages_change_no_factor(tiny, tmp_path, name: str):
    ends = []
    for messages in ("layer", "one"):
        method = {"name": name, "rank": 2, "messages": messages}
        run = trainer(tiny(method=method, train={"max_iterations": 6}), tmp_path / messages)
        run.run()
        ends.append(run.flat.vector)
    assert torch.equal(*ends)

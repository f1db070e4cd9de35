"""Which device a process computes on; no GPU needed."""

import pytest
import torch

from suite.world.world import choose_device


@pytest.mark.parametrize(
    "on_this_host, gpus, expected", [(4, 4, "cuda:2"), (4, 8, "cuda:2"), (4, 2, "cpu"), (4, 0, "cpu")]
)
def test_every_process_of_a_host_gets_a_gpu_of_its_own_or_none_does(monkeypatch, on_this_host, gpus, expected):
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert str(choose_device(on_this_host, local_rank=2)) == expected
    assert chosen == ([2] if expected != "cpu" else [])

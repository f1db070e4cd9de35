"""Deep gradient compression: its rule by hand, the methods it is in special cases, and whose momentum counts."""

import pytest
import torch

from suite import DistributedOptimizer
from suite.compress import select_topk
from suite.errors import ConfigError
from suite.methods import build_method, settings_from
from suite.plan import Layout
from training import gradients_of, parameters_after, trainer

STEP = {"lr": 0.5, "weight_decay": 0.0, "clip_norm": None}
PLAIN = STEP | {"momentum": 0.0}


def dgc(**settings) -> dict:
    return {"name": "dgc", "density": 0.05} | settings


def test_without_momentum_it_is_lags_bit_for_bit(tiny, tmp_path):
    ours = dgc(momentum=0.0, vectors="sparse")
    assert torch.equal(
        parameters_after(tiny(method=ours, optimizer=PLAIN), tmp_path / "dgc"),
        parameters_after(tiny(method={"name": "lags", "density": 0.05}, optimizer=PLAIN), tmp_path / "lags"),
    )


@pytest.mark.parametrize("vectors", ["whole", "sparse"])
def test_sending_everything_is_momentum_sgd(tiny, tmp_path, vectors: str):
    """Bit for bit with one worker, whose average needs no sum; what is sent whole keeps its momentum."""
    for workers in (1, 4):
        world = {"workers": workers}
        ours = tiny(method=dgc(density=1.0, vectors=vectors), optimizer=PLAIN, world=world)
        dense = tiny(method="dense", optimizer=STEP | {"momentum": 0.9}, world=world)
        ends = [parameters_after(config, tmp_path / f"{config.method.name}{workers}") for config in (ours, dense)]
        if workers == 1:
            assert torch.equal(*ends)
        torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masking", [True, False])
@pytest.mark.parametrize("messages", ["layer", "one"])
def test_the_rule_by_hand(tiny, tmp_path, masking: bool, messages: str):
    """u <- mu u + g, v <- v + u, send the k largest of v, clear both there: of every worker's own gradients."""
    method = dgc(momentum=0.75, masking=masking, messages=messages)
    run = trainer(tiny(method=method, optimizer=PLAIN, train={"max_iterations": 8}), tmp_path)
    seen = gradients_of(run)
    run.run()
    assert len(seen) == 8
    for worker in run.workers:
        u, v = torch.zeros(run.layout.size), torch.zeros(run.layout.size)
        for gradients in seen:
            u = u * 0.75 + gradients[worker.index]
            v = v + u
            for segment in run.exchange.plan.segments:
                part = slice(segment.start, segment.stop)
                sent = select_topk(v[part], segment.k)[1].long()
                v[part][sent] = 0.0
                if masking and segment.k < segment.size:
                    u[part][sent] = 0.0
        velocities = worker.compressor["velocities"]
        assert torch.equal(torch.cat([velocities[name] for name in run.layout.names]), u)
        assert torch.equal(worker.residual, v) and v.any()


def test_vectors_travel_whole_by_default():
    layout = Layout.of([("weight", (10, 10)), ("bias", (10,))])
    entries = {
        vectors: [s.k for s in build_method(settings_from(dgc(vectors=vectors))).plan(layout, 0).segments]
        for vectors in ("whole", "sparse")
    }
    assert entries == {"whole": [10, 5], "sparse": [1, 5]}
    with pytest.raises(ConfigError, match="follows from the tensors' shapes"):
        build_method(settings_from("dgc")).plan(Layout(("weight",), (100,)), 0)


def test_one_momentum_is_enough(tiny):
    with pytest.raises(ConfigError, match="a momentum of its own, and 0.9 after it would be a second one"):
        tiny(method=dgc())
    model = torch.nn.Linear(2, 2)
    with pytest.raises(ConfigError, match="set optimizer.momentum to 0"):
        DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1, momentum=0.5), method="dgc")

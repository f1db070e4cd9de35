"""What must hold between methods and settings, on real training steps (algorithm notes, sections 0 to 3)."""

import pytest
import torch

from suite.config.experiment import OptimizerConfig
from suite.data import TextDataset, load_dataset
from suite.models import build_model
from suite.plan import Layout
from suite.train.optimizer import FlatSGD
from suite.world.transports import Pending, VirtualTransport
from training import parameters_after, trainer

NO_DROPOUT = {"name": "lstm", "embedding": 8, "hidden": 12, "layers": 2, "dropout": 0.0}


def assert_bits(a: torch.Tensor, b: torch.Tensor) -> None:
    assert torch.equal(a.view(torch.int32), b.view(torch.int32))


@pytest.mark.parametrize("name", ["slgs", "lags"])
def test_sending_everything_is_dense(tiny, tmp_path, name: str):
    run = trainer(tiny(method={"name": name, "density": 1.0}), tmp_path / "sparse")
    run.run()
    assert all(not worker.residual.any() for worker in run.workers)
    torch.testing.assert_close(
        run.flat.vector, parameters_after(tiny(method="dense"), tmp_path / "dense"), rtol=1e-5, atol=1e-6
    )


def test_lags_with_one_layer_is_slgs(tiny, tmp_path, monkeypatch):
    slgs = parameters_after(tiny(method={"name": "slgs", "density": 0.05}), tmp_path / "slgs")
    one_layer = trainer(tiny(method={"name": "lags", "density": 0.05}), tmp_path / "lags")
    real, whole = one_layer.method.plan, Layout(("all",), (one_layer.layout.size,))
    monkeypatch.setattr(one_layer.method, "plan", lambda layout, epoch: real(whole, epoch))
    one_layer.run()
    assert_bits(one_layer.flat.vector, slgs)


def test_messages_do_not_change_what_is_selected(tiny, tmp_path):
    a, b = (
        parameters_after(tiny(method={"name": "lags", "density": 0.05, "messages": messages}), tmp_path / messages)
        for messages in ("layer", "one")
    )
    assert_bits(a, b)


@pytest.mark.parametrize("name", ["slgs", "lags"])
def test_lr_placements_agree_while_the_rate_is_constant_and_differ_after_a_decay(tiny, tmp_path, name: str):
    def end(placement: str, decay: list[int]) -> torch.Tensor:
        config = tiny(
            method={"name": name, "density": 0.05, "lr_placement": placement},
            # A power of two commutes with rounding, so the two placements must agree to the last bits.
            optimizer={"lr": 0.5, "momentum": 0.0, "weight_decay": 0.0, "clip_norm": None, "decay_epochs": decay},
        )
        return parameters_after(config, tmp_path / f"{placement}{decay}")

    assert_bits(end("outside", []), end("inside", []))
    difference = (end("outside", [1]) - end("inside", [1])).abs().max()
    assert difference > 1e-5  # after the fall, outside replays old residual at the new rate, inside at the old one


def test_lr_inside_scales_weight_decay_and_clipping_too(tiny, tmp_path):
    ends = [
        parameters_after(
            tiny(method={"name": "lags", "density": 0.1, "lr_placement": placement}, optimizer={"lr": 0.5}),
            tmp_path / placement,
        )
        for placement in ("outside", "inside")
    ]  # fmt: skip
    torch.testing.assert_close(*ends, rtol=1e-4, atol=1e-5)


def test_workers_are_shards_of_one_big_batch(tiny, tmp_path):
    """P workers with shards of a batch equal one worker with the whole batch, to rounding (dense, invariant a)."""
    plain = {"momentum": 0.9, "clip_norm": None}
    four = parameters_after(tiny(model=NO_DROPOUT, method="dense", optimizer=plain), tmp_path / "four")
    one = parameters_after(
        tiny(model=NO_DROPOUT, method="dense", optimizer=plain, world={"workers": 1}, train={"batch_size": 8}),
        tmp_path / "one",
    )
    torch.testing.assert_close(four, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["slgs", "lags"])
def test_mass_is_conserved_over_workers(tiny, tmp_path, name: str):
    """sum_p accumulated_p == P * update + sum_p residual_p, each worker's part bit for bit."""
    run = trainer(tiny(method={"name": name, "density": 0.05}, train={"max_iterations": 3}), tmp_path)
    seen, gradients = [], {}
    real, taking = run.exchange.finish, run.exchange._take

    def collecting(parameter, number):
        gradients.setdefault(run.exchange._receiver, {})[number] = parameter.grad.detach().reshape(-1).clone()
        taking(parameter, number)

    def watching(*arguments):
        flat = [torch.cat([gradients[i][n] for n in sorted(gradients[i])]) for i in range(len(run.workers))]
        before = [worker.residual + gradient for worker, gradient in zip(run.workers, flat, strict=True)]
        outcome = real(*arguments)
        left = [worker.accumulated for worker in run.workers]
        for accumulated, rest in zip(before, left, strict=True):
            assert_bits(torch.where(rest == 0, accumulated, rest), accumulated)
        seen.append((sum(b.double() for b in before), sum(r.double() for r in left), outcome.update.double().clone()))
        return outcome

    run.exchange.finish, run.exchange._take = watching, collecting
    run.run()
    assert len(seen) == 3
    for accumulated, left, update in seen:
        torch.testing.assert_close(accumulated, run.world.size * update + left, rtol=1e-5, atol=1e-7)


def test_without_error_feedback_nothing_is_kept(tiny, tmp_path):
    run = trainer(tiny(method={"name": "lags", "density": 0.05, "error_feedback": False}), tmp_path / "off")
    run.run()
    assert all(worker.residual is None for worker in run.workers)
    assert not torch.equal(run.flat.vector, parameters_after(tiny(), tmp_path / "on"))


class CountingTransport(VirtualTransport):
    """Notes the name of every collective."""

    def __init__(self):
        self.names: list[str] = []

    def all_reduce(self, tensor: torch.Tensor, name: str) -> Pending:
        self.names.append(name)
        return super().all_reduce(tensor, name)

    def all_gather(self, tensor: torch.Tensor, name: str) -> Pending:
        self.names.append(name)
        return super().all_gather(tensor, name)


@pytest.mark.parametrize("name", ["dense", "lags"])
def test_one_exchange_an_iteration_and_bytes_by_the_formula(tiny, tmp_path, name: str):
    """Clipping needs no second synchronisation; bytes are (P-1) 8k for gathers and 2 (P-1)/P 4d for the ring."""
    run = trainer(tiny(method=name, train={"max_iterations": 5}), tmp_path)
    run.world.transport = CountingTransport()
    run.run()
    assert [call for call in run.world.transport.names if call.startswith("message")] == ["message.0"] * 5
    p, d, k = run.world.size, run.layout.size, run.exchange.plan.entries
    an_iteration = 2 * (p - 1) / p * 4 * d if name == "dense" else (p - 1) * 8 * k
    assert run.world.bytes_sent == pytest.approx(5 * an_iteration)


def test_density_warm_up(tiny, tmp_path):
    method = {"name": "lags", "density": 0.02, "density_warmup": [0.5], "layer_density": {"decoder.*": 0.1}}
    run = trainer(tiny(method=method), tmp_path)
    run.exchange.start_epoch(0)
    assert {segment.k / segment.size for segment in run.exchange.plan.segments} == {0.5}
    run.exchange.start_epoch(1)
    ks = {segment.name: segment.k for segment in run.exchange.plan.segments}
    assert ks["decoder.weight"] == 60 and ks["embedding.weight"] == 8


@pytest.mark.parametrize("momentum, decay", [(0.0, 0.0), (0.9, 0.0), (0.9, 0.01)])
def test_our_sgd_is_torchs(momentum: float, decay: float):
    generator = torch.Generator().manual_seed(0)
    ours, theirs = (torch.ones(50) for _ in range(2))
    parameter = torch.nn.Parameter(theirs)
    reference = torch.optim.SGD([parameter], lr=0.1, momentum=momentum, weight_decay=decay)
    sgd = FlatSGD(ours, OptimizerConfig(momentum=momentum, weight_decay=decay), lr_inside=False)
    for step in range(5):
        gradient = torch.randn(50, generator=generator)
        lr = 0.1 / (step + 1)
        reference.param_groups[0]["lr"], parameter.grad = lr, gradient.clone()
        reference.step()
        sgd.step(gradient.clone(), lr)
    assert_bits(ours, parameter.detach())


def test_clipping_is_torchs():
    update, parameters = torch.randn(50), torch.zeros(50)
    parameter = torch.nn.Parameter(torch.zeros(50))
    parameter.grad = update.clone()
    torch.nn.utils.clip_grad_norm_([parameter], 0.25)
    FlatSGD(parameters, OptimizerConfig(clip_norm=0.25, momentum=0.0), lr_inside=False).step(update, lr=1.0)
    torch.testing.assert_close(parameters, -parameter.grad)


def test_every_worker_reads_its_own_contiguous_text(tiny):
    config = tiny()
    dataset = load_dataset(config)
    assert isinstance(dataset, TextDataset)
    streams = dataset.streams(4, 2)
    assert torch.equal(streams.flatten(), dataset.train[: streams.numel()])


def test_same_seed_same_start_other_seed_other_start(tiny):
    def weights(seed: int) -> torch.Tensor:
        config = tiny(train={"seed": seed})
        return torch.cat([p.flatten() for p in build_model(config, load_dataset(config)).parameters()])

    assert torch.equal(weights(0), weights(0)) and not torch.equal(weights(0), weights(1))

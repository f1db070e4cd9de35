"""The drop-in optimiser: in one process against plain torch, and on real ranks against the suite's own training."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import suite
from helpers import ROOT, require, step_beside
from suite.config import load_config
from suite.config.experiment import WorldConfig
from suite.errors import ConfigError, SuiteError
from suite.world import World
from suite.world.check import horovod_build
from suite.world.launch import launch
from suite.world.transports import VirtualTransport
from training import summary_of

PROGRAM = Path(__file__).with_name("dropin_program.py")


def alone() -> World:
    """One worker in this process."""
    return World(WorldConfig(workers=1), VirtualTransport(), torch.device("cpu"))


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 3))


def batches(count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(8, 6, generator=generator) for _ in range(count)]


def wrapped(net: nn.Module, base: torch.optim.Optimizer | None = None, **settings) -> torch.optim.Optimizer:
    step = {"lr": 0.1, "momentum": 0.9} | step_beside(settings.get("method", "lags"))
    base = base or torch.optim.SGD(net.parameters(), **step)
    return suite.DistributedOptimizer(base, named_parameters=net.named_parameters(), world=alone(), **settings)


def train(net: nn.Module, optimizer: torch.optim.Optimizer, data: list[torch.Tensor]) -> torch.Tensor:
    for x in data:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def test_sending_everything_is_the_wrapped_optimiser():
    plain, ours = model(), model()
    expected = train(plain, torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9), batches(5))
    for settings in ({"method": "dense"}, {"method": "lags", "density": 1.0}):
        ours = model()
        assert torch.equal(train(ours, wrapped(ours, **settings), batches(5)), expected)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_one_worker_is_sparsified_sgd_with_error_feedback(name: str):
    """Against the definition, written out with a sort."""
    by_hand, ours = model(), model()
    make = getattr(torch.optim, name)
    reference = make(by_hand.parameters(), lr=0.05)
    residuals = [torch.zeros_like(p) for p in by_hand.parameters()]
    for x in batches(6):
        reference.zero_grad()
        by_hand(x).square().mean().backward()
        for parameter, residual in zip(by_hand.parameters(), residuals, strict=True):
            acc = (residual + parameter.grad).flatten()
            k = max(int(0.2 * acc.numel()), 1)
            keep = torch.zeros_like(acc)
            keep[acc.abs().argsort(descending=True, stable=True)[:k]] = 1
            parameter.grad = (acc * keep).view_as(parameter)
            residual.copy_((acc * (1 - keep)).view_as(parameter))
        reference.step()
    found = train(ours, wrapped(ours, make(ours.parameters(), lr=0.05), method="lags", density=0.2), batches(6))
    assert torch.equal(found, torch.cat([p.detach().flatten() for p in by_hand.parameters()]))


def test_is_an_instance_of_what_it_wraps_and_follows_a_schedule():
    net = model()
    optimizer = wrapped(net, method="lags", density=0.1)
    assert isinstance(optimizer, torch.optim.SGD)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    for x in batches(4):
        train(net, optimizer, [x])
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.001)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_add_up_over_passes(set_to_none: bool):
    half, whole = model(), model()
    x = batches(1)[0]
    twice = wrapped(half, method="lags", density=0.1, backward_passes_per_step=2)
    once = wrapped(whole, method="lags", density=0.1)
    for _ in range(3):
        twice.zero_grad(set_to_none=set_to_none)
        once.zero_grad(set_to_none=set_to_none)
        (whole(x).square().mean() * 2).backward()
        for _ in range(2):
            half(x).square().mean().backward()
        twice.step()
        once.step()
    for a, b in zip(half.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    with pytest.raises(SuiteError, match="backward_passes_per_step"):
        for _ in range(3):
            half(x).square().mean().backward()


def test_groups_frozen_and_unused_parameters():
    net = model()
    net.extra = nn.Linear(6, 2)  # never used
    net[0].bias.requires_grad_(False)
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    used = [net[0].weight, net[0].bias]
    base = torch.optim.SGD(
        [{"params": used}, {"params": [*net[2].parameters(), *net.extra.parameters()], "lr": 0.5}], 0.1
    )
    optimizer = wrapped(net, base, method="lags", density=0.2)

    def one_step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        net[2](torch.tanh(net[0](x))).square().mean().backward()
        optimizer.step()

    for x in batches(3):
        one_step(x)
    changed = {name for name, p in net.named_parameters() if not torch.equal(p.detach(), before[name])}
    assert changed == {"0.weight", "2.weight", "2.bias"}
    net[0].bias.requires_grad_(True)
    with pytest.raises(SuiteError, match="wrap the optimiser anew"):
        one_step(batches(1)[0])


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "lags", "density": 0.1}, {"method": "gtopk", "density": 0.1}, {"method": "rtopk", "density": 0.1},
        {"method": "wangni", "density": 0.1}, {"method": "power_sgd", "rank": 2}, {"method": "acp_sgd", "rank": 2},
        {"method": "dgc", "density": 0.1},
    ],
    ids=lambda settings: settings["method"],
)  # fmt: skip
def test_state_goes_round_trip_with_the_residual(tmp_path, settings: dict):
    straight, first = model(), model()
    expected = train(straight, wrapped(straight, **settings), batches(6))
    optimizer = wrapped(first, **settings)
    train(first, optimizer, batches(6)[:3])
    torch.save({"model": first.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "state.pt")
    second = model()
    resumed = wrapped(second, **settings)
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    second.load_state_dict(state["model"])
    resumed.load_state_dict(state["optimizer"])
    assert torch.equal(train(second, resumed, batches(6)[3:]), expected)


def test_a_state_without_this_processes_residual_says_so():
    net = model()
    optimizer = wrapped(net, method="lags", density=0.1)
    train(net, optimizer, batches(2))
    state = optimizer.state_dict()
    state["suite"]["index"], state["suite"]["world_size"] = 1, 4
    with pytest.warns(UserWarning, match="process 1 of 4: the residual begins at zero"):
        optimizer.load_state_dict(state)
    assert not optimizer.state_dict()["suite"]["residual"].any()
    del state["suite"]
    with pytest.warns(UserWarning, match="holds no residual"):
        optimizer.load_state_dict(state)
    other = wrapped(nn.Linear(2, 2), method="lags")
    with pytest.raises((SuiteError, ValueError)):
        other.load_state_dict(optimizer.state_dict())


def test_a_state_of_another_method_says_so():
    states = {}
    for name in ("dense", "lags", "power_sgd"):
        net = model()
        optimizer = wrapped(net, method=name)
        train(net, optimizer, batches(2))
        states[name] = optimizer.state_dict()
    for name, other in (("lags", "dense"), ("dgc", "lags"), ("power_sgd", "lags"), ("lags", "power_sgd")):
        net = model()
        optimizer = wrapped(net, method=name)
        with pytest.warns(UserWarning, match=f"is of method {other}: the residual begins at zero"):
            optimizer.load_state_dict(states[other])
        train(net, optimizer, batches(2))
    without = wrapped(model(), method="lags", error_feedback=False)
    with pytest.warns(UserWarning, match="holds no residual"):
        wrapped(model(), method="lags").load_state_dict(without.state_dict())


@pytest.mark.parametrize("name", ["power_sgd", "acp_sgd"])
def test_factors_are_those_of_any_process(name: str):
    """All processes average the same factors, so that process 0's state, loaded everywhere, keeps them in step."""
    net = model()
    optimizer = wrapped(net, method=name)
    train(net, optimizer, batches(3))
    state = optimizer.state_dict()
    state["suite"]["index"], state["suite"]["world_size"] = 1, 4
    other = wrapped(model(), method=name)
    with pytest.warns(UserWarning, match="process 1 of 4"):
        other.load_state_dict(state)
    found, kept = other.state_dict()["suite"]["compressor"], state["suite"]["compressor"]
    assert kept["factors"] and found["factors"] == kept["factors"]


def test_clipping_goes_between_synchronize_and_step():
    net = model()
    optimizer = wrapped(net, method="lags", density=0.5)
    net(batches(1)[0]).square().mean().backward()
    optimizer.synchronize()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1e-3)
    before = [p.detach().clone() for p in net.parameters()]
    with optimizer.skip_synchronize():
        optimizer.step()
    moved = torch.cat([(p - b).flatten() for p, b in zip(net.parameters(), before, strict=True)])
    assert float(moved.detach().norm()) == pytest.approx(0.1 * 1e-3, rel=1e-3)


def test_changing_gradients_on_their_way_is_refused():
    net = model()
    optimizer = wrapped(net, method="lags", density=0.5)
    net(batches(1)[0]).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1e-3)
    with pytest.raises(SuiteError, match="call optimizer.synchronize\\(\\) first"):
        optimizer.step()
    with pytest.raises(SuiteError, match="on their way"):
        optimizer.zero_grad()


def test_a_bad_gradient_skips_the_step_and_repetition_ends_it():
    net = model()
    optimizer = wrapped(net, method="lags", density=0.1)
    train(net, optimizer, batches(1))
    before, residual = net[0].weight.detach().clone(), optimizer.state_dict()["suite"]["residual"]
    bad = torch.full((8, 6), float("nan"))
    with pytest.warns(UserWarning, match="not finite"):
        train(net, optimizer, [bad])
    assert torch.equal(net[0].weight, before) and optimizer.skipped == 1
    assert torch.equal(optimizer.state_dict()["suite"]["residual"], residual)
    with pytest.raises(SuiteError, match="3 steps in a row"), pytest.warns(UserWarning):
        train(net, optimizer, [bad, bad])


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"method": "lagss"}, "did you mean 'lags'"),
        ({"method": "lags", "densty": 0.1}, "did you mean 'density'"),
        ({"method": "lags", "density": 2}, "less than or equal to 1"),
        ({"method": "lags", "lr_placement": "inside"}, "must be outside"),
        ({"op": 1}, "must be the average"),
        ({"compression": "fp16"}, "compress twice"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        wrapped(model(), **settings)


def test_parameters_without_a_name_are_refused():
    net = model()
    base = torch.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(ConfigError, match="2 parameters of the optimiser are not among named_parameters"):
        suite.DistributedOptimizer(base, named_parameters=net[0].named_parameters(), world=alone())


# -- real ranks -------------------------------------------------------------------------------------------------------


def ranks(transport: str, processes: int, command: list[str], folder: Path) -> None:
    if transport == "horovod":
        build = horovod_build()
        require("horovod", "gloo" in build.controllers, f"Horovod with Gloo is not here ({build.reason})")
    launch(WorldConfig(workers=processes, processes=processes, transport=transport), command, folder / "logs")


@pytest.mark.slow
@pytest.mark.parametrize("transport, processes, method", [("horovod", 4, "lags"), ("torch", 2, "dense")])
def test_a_script_of_ones_own_gives_the_suites_hash(
    tmp_path, transport: str, processes: int, method: str, suite_command, config_file
):
    config = config_file(
        model={"name": "resnet20"},
        data={"name": "digits"},
        method={"name": method} | ({} if method == "dense" else {"density": 0.01}),
        optimizer={"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
        world={"workers": processes, "processes": processes, "transport": transport},
        train={"epochs": 1, "max_iterations": 5, "batch_size": 4},
    )
    ranks(transport, processes, [sys.executable, str(PROGRAM), str(config), str(tmp_path / "hash.json")], tmp_path)
    done = suite_command("train", config, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "hash.json").read_text())
    assert found["sha256"] == summary_of(tmp_path / "run")["parameters_sha256"]
    assert found["bytes_sent"] == pytest.approx(summary_of(tmp_path / "run")["bytes_sent"])
    # The run has merged its messages by what it measured, and says what that predicts beside what was traced.
    assert summary_of(tmp_path / "run")["messages"] < summary_of(tmp_path / "run")["segments"]
    trace = json.loads((tmp_path / "run" / "timeline.json").read_text())
    assert 0 <= trace["hidden_share"] <= 1 and {e["phase"] for e in trace["predicted"]} >= {"backward", "exchange"}
    assert load_config(str(tmp_path / "run" / "config.yaml"), [f"costs={tmp_path / 'run' / 'costs.yaml'}"]).costs


@pytest.mark.slow
@pytest.mark.horovod
def test_the_documented_script_learns(tmp_path, capfd):
    """The code of docs/use-in-your-training.md, as it stands there."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "use-in-your-training.md").read_text(), re.DOTALL)
    (tmp_path / "script.py").write_text(code)
    ranks("horovod", 2, [sys.executable, str(tmp_path / "script.py")], tmp_path)
    loss, sent = re.search(r"loss ([\d.]+), ([\d.]+) MB sent", capfd.readouterr().out).groups()
    assert 0 < float(loss) < 10 and 0 < float(sent) < 0.1


@pytest.mark.slow
@pytest.mark.horovod
def test_horovods_own_benchmark_with_two_lines_changed(tmp_path):
    """The script is not part of Horovod's package on PyPI: SUITE_HOROVOD_BENCHMARK names a copy from its repository."""
    source = os.environ.get("SUITE_HOROVOD_BENCHMARK")
    if not source:
        pytest.skip("SUITE_HOROVOD_BENCHMARK does not name Horovod's pytorch_synthetic_benchmark.py")
    script = Path(source).read_text()
    script = script.replace("import horovod.torch as hvd", "import horovod.torch as hvd\nimport suite", 1)
    script, count = re.subn(
        r"hvd\.DistributedOptimizer\(optimizer,", 'suite.DistributedOptimizer(optimizer, method="lags",', script
    )
    assert count == 1
    if not torch.cuda.is_available():
        script = script.replace("norm_layer=hvd.SyncBatchNorm", "")  # Horovod has it for GPUs only
    (tmp_path / "benchmark.py").write_text(script)
    small = ["--model", "resnet18", "--batch-size", "2", "--num-warmup-batches", "1", "--num-batches-per-iter", "1"]
    ranks("horovod", 4, [sys.executable, str(tmp_path / "benchmark.py"), *small, "--num-iters", "2"], tmp_path)

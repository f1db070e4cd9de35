"""Number formats and memory layouts change rounding, not what is trained; memory that is kept changes nothing."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from helpers import tiny_settings
from suite.compress import accumulation
from suite.config import validate_config
from suite.data import load_dataset
from suite.errors import ConfigError
from suite.train.graph import record_graph
from suite.train.memory import keep_freed_memory
from suite.train.tasks import Classification
from suite.world import Worker
from training import parameters_after, trainer

IMAGES = {
    "model": {"name": "resnet20"},
    "data": {"name": "synthetic", "image_size": 16, "samples": 64},
    "method": {"name": "lags", "density": 0.1},
    "optimizer": {"lr": 0.01, "momentum": 0.9},
    "world": {"workers": 2},
    "train": {"epochs": 1, "batch_size": 4, "max_iterations": 3},
    "assumption": {"every": 0},
}


def test_channels_last_differs_in_rounding_only(tmp_path):
    plain, last = (
        parameters_after(validate_config(IMAGES | {"compute": {"channels_last": on}}), tmp_path / str(on))
        for on in (False, True)
    )
    torch.testing.assert_close(plain, last, rtol=1e-3, atol=1e-4)


def test_channels_last_reaches_the_network(tmp_path):
    run = trainer(validate_config(IMAGES | {"compute": {"channels_last": True}}), tmp_path / "run")
    seen = []
    run.flat.model.conv1.register_forward_hook(
        lambda module, inputs, output: seen.append(inputs[0].is_contiguous(memory_format=torch.channels_last))
    )
    run.run()
    assert seen and all(seen)


def test_bfloat16_computes_in_it_and_keeps_parameters_and_gradients_in_float32(tmp_path):
    run = trainer(validate_config(IMAGES | {"compute": {"precision": "bfloat16"}}), tmp_path / "run")
    seen, gradients = [], []
    run.flat.model.conv1.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    taken = run.exchange.gradient_ready
    run.exchange.gradient_ready = lambda *a: (gradients.append(a[2].dtype), taken(*a))
    run.run()
    assert set(seen) == {torch.bfloat16} and set(gradients) == {torch.float32}
    assert run.flat.vector.dtype == torch.float32 and torch.isfinite(run.flat.vector).all()


@pytest.mark.parametrize("data", ["synthetic", pytest.param("cifar10", marks=pytest.mark.slow)])
def test_sixteen_workers_are_one_worker_with_all_their_samples(tmp_path, data: str, monkeypatch):
    """Dense with 16 workers equals one worker with a batch 16 times as large, for 20 iterations of ResNet-20.

    BatchNorm is the one layer that tells them apart, because each worker normalises by its own batch. So it is kept in
    evaluation mode in both, where it scales by its initial statistics: the comparison is of everything else. It is made
    in float64, because in float32 sooner or later a unit within rounding of zero falls on the other side of its ReLU,
    from where on the two are apart by more than rounding; the fused kernel, which knows float32 alone, is replaced.
    """
    if data == "cifar10" and not os.environ.get("SUITE_DATA"):
        pytest.skip("SUITE_DATA names no folder with CIFAR-10")
    monkeypatch.setattr(accumulation, "accumulate", lambda part, gradient, *_: np.copyto(part, gradient))
    monkeypatch.setattr(accumulation, "is_finite", lambda _: True)
    sources = {
        "synthetic": {"name": "synthetic", "image_size": 16, "samples": 640},
        "cifar10": {"name": "cifar10", "augment": False, "max_train_samples": 640},
    }
    monkeypatch.setattr(Classification, "loss", _loss_in_float64)
    monkeypatch.setattr(Classification, "evaluate", lambda self, model: {"test_loss": 0.0, self.metric: 0.0})
    torch.set_default_dtype(torch.float64)
    try:
        ends, starts = [], []
        for workers in (16, 1):
            config = validate_config(IMAGES | {
                "data": sources[data], "method": {"name": "dense"}, "world": {"workers": workers},
                "optimizer": {"lr": 0.01, "momentum": 0.9, "weight_decay": 1e-4},
                "train": {"epochs": 2, "batch_size": 32 // workers, "max_iterations": 20},
            })  # fmt: skip
            run = trainer(config, tmp_path / f"{workers}")
            for module in run.flat.model.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.train = lambda mode=True, module=module: module
                    module.training = False
            starts.append(run.flat.vector.clone())
            run.run()
            ends.append(run.flat.vector.clone())
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(*starts)
    moved, apart = (ends[0] - starts[0]).norm(), (ends[0] - ends[1]).norm()
    assert apart < 1e-12 * moved, f"{float(apart):.2g} apart after moving {float(moved):.2g}"


def _loss_in_float64(self: Classification, model: torch.nn.Module, worker: Worker, iteration: int) -> torch.Tensor:
    images, labels = self.epoch.batch(worker.index, iteration)
    return torch.nn.functional.cross_entropy(model(images.double()), labels)


def test_kept_memory_is_a_switch_of_the_c_library():
    assert keep_freed_memory() in (True, False)  # where it is refused, training goes on


def test_data_of_a_run_are_those_that_were_checked():
    config = validate_config(IMAGES)
    assert load_dataset(config) is load_dataset(config)


def test_a_graph_needs_a_gpu_a_fixed_shape_and_no_random_numbers(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ConfigError, match="needs a GPU"):
        trainer(validate_config(IMAGES | {"compute": {"cuda_graph": True}}), tmp_path / "run")
    with pytest.raises(ConfigError, match="not models of text"):
        validate_config(tiny_settings() | {"compute": {"cuda_graph": True}})
    drawing = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    with pytest.raises(ConfigError, match="cannot record 1, which draws"):
        record_graph(drawing, SimpleNamespace(device=torch.device("cuda")), torch.autocast)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_graph_trains_the_same(tmp_path):
    plain, graph = (
        parameters_after(validate_config(IMAGES | {"compute": {"cuda_graph": on}}), tmp_path / str(on))
        for on in (False, True)
    )
    torch.testing.assert_close(plain, graph, rtol=1e-3, atol=1e-4)

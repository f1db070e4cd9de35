"""The problem whose full gradient is known."""

import pytest
import torch

from suite.config import validate_config
from suite.data import load_dataset
from suite.models import build_model
from suite.train.tasks import build_task
from training import summary_of, trainer


def problem(**sections):
    values = {
        "model": {"name": "mlp", "widths": [6, 4]},
        "data": {"name": "teacher", "features": 5, "samples": 64},
        "method": {"name": "lags", "density": 0.1, "lr_placement": "inside"},
        "optimizer": {"lr": 0.1, "momentum": 0.0},
        "world": {"workers": 4},
        "train": {"epochs": 3, "batch_size": 4},
    }
    return validate_config(values | sections)


def test_the_metric_is_the_full_gradients_squared_norm():
    config = problem()
    dataset = load_dataset(config)
    model = build_model(config, dataset)
    with torch.no_grad():
        found = build_task(dataset, config).evaluate(model)
    vectors, targets = dataset.train
    loss = ((model(vectors) - targets) ** 2).mean() / 2
    loss.backward()
    squared = sum(float(parameter.grad.square().sum()) for parameter in model.parameters())
    assert found["gradient_norm_squared"] == pytest.approx(squared, rel=1e-5)
    assert found["test_loss"] == pytest.approx(float(loss.detach()), rel=1e-6)


def test_an_epochs_batches_average_to_the_full_gradient():
    config = problem()
    dataset = load_dataset(config)
    model = build_model(config, dataset)
    task = build_task(dataset, config)
    workers = trainer_workers(config)
    task.start_epoch(0, workers)
    losses = [task.loss(model, worker, number) for number in range(4) for worker in workers]
    assert float(torch.stack(losses).mean().detach()) == pytest.approx(task.evaluate(model)["test_loss"], rel=1e-5)


def trainer_workers(config):
    from suite.world import Worker
    from suite.world.worker import FlatParameters

    flat = FlatParameters(build_model(config, load_dataset(config)))
    return [Worker(index, 0, flat, False) for index in range(config.world.workers)]


def test_training_brings_the_gradient_down(tmp_path):
    trainer(problem(train={"epochs": 40, "batch_size": 4}), tmp_path / "run").run()
    summary = summary_of(tmp_path / "run")
    assert summary["metric"] == "gradient_norm_squared" and not summary["higher_is_better"]
    assert summary["best"] < 0.1 * summary_first(tmp_path / "run")


def summary_first(folder) -> float:
    import csv

    with open(folder / "epochs.csv") as file:
        return float(next(csv.DictReader(file))["value"])

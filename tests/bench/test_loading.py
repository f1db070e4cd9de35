"""The loading benchmark times what training is given, and its numbers fit together. Nothing here is about speed."""

import json

import pytest
import torch
import yaml
from typer.testing import CliRunner

from helpers import ROOT, tiny_settings
from suite.bench.loading import _alone, _Taker, bench_loading
from suite.cli.app import app
from suite.config import validate_config
from suite.data import load_dataset
from suite.train.tasks import build_task
from suite.world import Worker
from suite.world.worker import FlatParameters

IMAGES = {
    "model": {"name": "resnet20"},
    "data": {"name": "synthetic", "samples": 64, "image_size": 8},
    "compute": {"channels_last": True},
}


@pytest.mark.parametrize("sections, unit, batch", [(IMAGES, "samples", 2), ({}, "tokens", 10)])
def test_rates_and_their_ratio(tiny, sections: dict, unit: str, batch: int):
    threads = torch.get_num_threads()
    found = bench_loading(tiny(**sections), repeats=1)
    seconds = found["seconds_a_batch"]
    assert (found["unit"], found["batch"]) == (unit, batch) and torch.get_num_threads() == threads
    for rate, case in (("loaded", "load"), ("consumed", "train"), ("copied", "copy")):
        assert found[rate] == pytest.approx(batch / seconds[case])
    assert found["ratio"] == pytest.approx(found["loaded"] / found["consumed"])


def test_what_is_taken_is_what_the_network_is_given(tiny):
    config = tiny(**IMAGES)
    dataset = load_dataset(config)
    task = build_task(dataset, config)
    worker = Worker(1, 0, FlatParameters(torch.nn.Linear(1, 1)), with_residual=False)
    task.start_epoch(0, [worker])
    taker = _Taker()
    taker.take(task, worker, 3)
    assert torch.equal(taker.batch, dataset.epoch(0, 0, 4, 2, [1]).batch(1, 3)[0])
    assert taker.batch.is_contiguous(memory_format=torch.channels_last)


def test_one_process_and_one_thread():
    values = tiny_settings() | IMAGES | {"data": {"name": "imagenet", "threads": 6, "image_size": 32}}
    values["world"] = {"workers": 4, "processes": 4, "transport": "horovod", "threads": 3}
    config = _alone(validate_config(values))
    assert (config.world.processes, config.world.transport, config.world.threads, config.data.threads) == (
        1, "virtual", 1, 1,
    )  # fmt: skip


def test_one_object_or_a_table(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(tiny_settings()))
    arguments = ["bench", "loading", str(path), "--quick"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0 and list(json.loads(result.stdout)["cases"]) == [str(path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0 and "how many processes that train" in result.stdout


def test_the_page_about_data_names_the_command():
    assert "suite bench loading" in (ROOT / "docs" / "data.md").read_text()

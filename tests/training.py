"""Running the trainer inside a test."""

import json
from pathlib import Path

import torch

from suite.config import ExperimentConfig
from suite.data import load_dataset
from suite.record import RunFolder
from suite.train.loop import Trainer
from suite.world import open_world


def trainer(config: ExperimentConfig, folder: Path) -> Trainer:
    """A trainer in this process that has not started."""
    run_folder = RunFolder(folder)
    run_folder.claim(config, restart_if_changed=False)
    run_folder.release()
    return Trainer(config, run_folder, open_world(config.world), load_dataset(config))


def parameters_after(config: ExperimentConfig, folder: Path) -> torch.Tensor:
    """The flat parameters [d] a run ends with."""
    run = trainer(config, folder)
    run.run()
    return run.flat.vector


def summary_of(folder: Path) -> dict:
    """A finished run's summary."""
    return json.loads((folder / "summary.json").read_text())

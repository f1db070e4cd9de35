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


def gradients_of(run: Trainer) -> list[dict[int, torch.Tensor]]:
    """Fills up, an iteration at a time, with the flat gradient of every worker."""
    seen: list[dict[int, torch.Tensor]] = []
    taking, beginning = run.exchange._take, run.exchange.begin

    def begin(workers, lr):
        seen.append({p: torch.zeros(run.layout.size) for p in range(len(workers))})
        beginning(workers, lr)

    def take(parameter, number):
        start, stop = run.layout.bounds[number], run.layout.bounds[number + 1]
        if run.exchange._receiver is not None:
            seen[-1][run.exchange._receiver][start:stop] = parameter.grad.detach().reshape(-1)
        taking(parameter, number)

    run.exchange.begin, run.exchange._take = begin, take
    return seen


def summary_of(folder: Path) -> dict:
    """A finished run's summary."""
    return json.loads((folder / "summary.json").read_text())

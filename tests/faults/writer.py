"""What a forked process of a test does: train in a folder, from a server that has imported everything already."""

from pathlib import Path
from typing import Any

import torch

from suite.config import validate_config
from training import trainer


def train_in(folder: Path, settings: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    trainer(validate_config(settings), folder).run()


def train_together(folder: Path, settings: dict[str, Any], barrier: Any) -> None:
    """Start training when all have come, and write the end of the run when all have come so far."""
    torch.set_num_threads(1)
    run = trainer(validate_config(settings), folder)
    finish = run._finish
    run._finish = lambda: (barrier.wait(300), finish())
    barrier.wait(300)
    run.run()

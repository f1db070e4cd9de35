"""Checkpoints: everything that may influence training, placed by worker so that any number of processes can resume.

`checkpoint/step-<iteration>/` holds `shared.pt`, one `worker-<index>.pt` a worker and `manifest.json` with their
SHA-256. The folder appears by one rename after all processes have written; the one before is kept as a spare.
"""

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from suite.errors import SuiteError
from suite.record.atomic import write_json
from suite.world import Worker, World

_KEEP = 2


def save_checkpoint(
    folder: Path, world: World, workers: list[Worker], iteration: int, shared: dict[str, Any],
    beat: Callable[..., None] = lambda *_, **__: None,
) -> None:  # fmt: skip
    """Write one checkpoint; entered by all processes together.

    Args:
        folder: the run's checkpoint folder.
        workers: the local ones.
        iteration: iterations done.
        shared: what is equal on all processes: plain tensors and values.
        beat: is told of every step, as `StallWatch.beat`.
    """
    aside, final = folder / f".step-{iteration:010d}.part", folder / f"step-{iteration:010d}"
    aside.mkdir(parents=True, exist_ok=True)
    hashes = {}
    for worker in workers:
        beat(f"wrote worker {worker.index} of checkpoint {iteration}")
        hashes |= _save(worker.state_dict(), aside / f"worker-{worker.index:04d}.pt")
    if world.rank == 0:
        hashes |= _save(shared, aside / "shared.pt")
    beat(f"waited for all to write checkpoint {iteration}", waiting=True)
    # Gathering the hashes is also the barrier after which every file is known to be there.
    everywhere = {name: digest for part in world.transport.gather_objects(hashes) for name, digest in part.items()}
    if world.rank == 0:
        beat(f"completed checkpoint {iteration}", patient=True)
        write_json(aside / "manifest.json", {"iteration": iteration, "workers": world.size, "sha256": everywhere})
        shutil.rmtree(final, ignore_errors=True)
        os.replace(aside, final)
        _tidy(folder)


def load_checkpoint(
    folder: Path, workers: int, device: torch.device | str = "cpu"
) -> tuple[Path, dict[str, Any], list[str]] | None:
    """Find the newest whole checkpoint.

    Args:
        folder: the run's checkpoint folder.
        workers: P of the run that is to continue.
        device: where tensors go; they may come from another process's.

    Returns:
        (its folder, its shared part, sentences about damaged ones that were passed over), or None when there is none.

    Raises:
        SuiteError: there are checkpoints but none is whole, or it was made by another number of workers.
    """
    complaints: list[str] = []
    for step in reversed(_steps(folder)):
        manifest = _read_manifest(step)
        if manifest is None or any(_digest(step / name) != digest for name, digest in manifest["sha256"].items()):
            complaints.append(f"checkpoint {step.name} is damaged and was passed over")
            continue
        if manifest["workers"] != workers:
            raise SuiteError(
                f"{step} was made by {manifest['workers']} workers and this run has {workers}: their residuals and "
                "data positions cannot be dealt out anew; set world.workers back, or begin in another folder with --out"
            )
        return step, torch.load(step / "shared.pt", device, weights_only=True), complaints
    if complaints:
        raise SuiteError(
            f"no checkpoint in {folder} is whole ({'; '.join(complaints)}); delete that folder to start again"
        )
    return None


def load_workers(step: Path, workers: list[Worker]) -> None:
    """Give the local workers their saved state."""
    for worker in workers:
        path, device = step / f"worker-{worker.index:04d}.pt", worker.accumulated.device
        worker.load_state_dict(torch.load(path, device, weights_only=True))


def _steps(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"))


def _tidy(folder: Path) -> None:
    for old in _steps(folder)[:-_KEEP] + list(folder.glob(".step-*.part")):
        shutil.rmtree(old, ignore_errors=True)


def _read_manifest(step: Path) -> dict[str, Any] | None:
    try:
        return json.loads((step / "manifest.json").read_text())
    except (OSError, json.JSONDecodeError):
        return None


def _save(value: dict[str, Any], path: Path) -> dict[str, str]:
    whole = io.BytesIO()  # torch's own writer hides a full disk behind an error about its file format
    torch.save(value, whole)
    with open(path, "wb") as file:
        file.write(whole.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    return {path.name: hashlib.sha256(whole.getbuffer()).hexdigest()}


def _digest(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "missing"

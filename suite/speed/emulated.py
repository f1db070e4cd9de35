"""Emulations as tables: every iteration, and rank 0's traced one beside its prediction.

An emulation's folder is results/<profile>/emulated/<network>/<P>/<model>/<method>. A profile's tables take its own
emulations, and those of results/reference for the cells it has none of.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from suite.errors import SuiteError

REFERENCE = "reference"
_CELL = ["model", "method", "network", "workers"]
_FACTS = ["density", "selection", "stretch", "bound_s", "predicted_s", "cpu_busy"]
EMULATED = ["emulated_in", *_CELL, *_FACTS, "iteration", "iteration_s", "run"]
TIMELINE = ["emulated_in", *_CELL, "selection", "kind", "phase", "event", "start", "end"]
_METHODS = ("dense", "slgs", "lags")


@dataclass(frozen=True)
class Emulation:
    """One finished emulation.

    Attributes:
        folder: where its files are.
        root: the folder that holds a folder a profile.
        summary: its summary.json.
    """

    folder: Path
    root: Path
    summary: dict[str, Any]

    @property
    def key(self) -> tuple:
        """Model, method, network, workers and where the time of selection came from."""
        return tuple(self.summary[name] for name in (*_CELL, "selection"))

    @property
    def keys(self) -> dict[str, Any]:
        """The columns that both tables start with."""
        profile = self.folder.relative_to(self.root).parts[0]
        return {"emulated_in": profile} | {name: self.summary[name] for name in _CELL}

    @property
    def run(self) -> str:
        """The folder as it is named from the checkout's root."""
        return f"results/{self.folder.relative_to(self.root)}"

    def iterations(self) -> pd.DataFrame:
        """A row an iteration: EMULATED."""
        try:
            frame = pd.read_csv(self.folder / "iterations.csv")[["iteration", "iteration_s"]]
        except (OSError, ValueError, KeyError) as error:
            raise self._damaged("iterations.csv") from error
        facts = {name: self.summary.get(name) for name in _FACTS}
        facts["density"] = facts["density"] or 1.0  # dense sends everything
        return frame.assign(**self.keys, **facts, run=self.run)[EMULATED]

    def timeline(self) -> pd.DataFrame:
        """A row an event, in seconds: TIMELINE."""
        try:
            found = json.loads((self.folder / "timeline.json").read_text())
            traced = [event for event in found["events"] if event.get("rank", 0) == 0]
            rows = [{"kind": "traced"} | event for event in traced]
            rows += [{"kind": "predicted"} | event for event in found.get("predicted", [])]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged("timeline.json") from error
        frame = pd.DataFrame(rows, columns=["kind", "phase", "label", "start", "end"]).rename(
            columns={"label": "event"}
        )
        return frame.assign(**self.keys, selection=self.summary["selection"])[TIMELINE]

    def _damaged(self, name: str) -> SuiteError:
        return SuiteError(f"{self.folder / name} is missing or damaged; remove {self.folder} and emulate it again")


def emulations(results: Path) -> list[Emulation]:
    """The finished emulations that the tables of the profile whose folder is `results` take, in a fixed order.

    Raises:
        SuiteError: a summary is damaged.
    """
    found: dict[tuple, Emulation] = {}
    for folder in (results.parent / REFERENCE, results):  # what comes later counts
        for path in sorted(folder.glob("emulated/*/*/*/*/summary.json")):
            try:
                emulation = Emulation(path.parent, results.parent, json.loads(path.read_text()))
                if emulation.summary.get("complete"):
                    found[emulation.key] = emulation
            except (ValueError, KeyError, AttributeError) as error:
                raise SuiteError(f"{path} is damaged; remove {path.parent} and emulate it again") from error
    return sorted(found.values(), key=_order)


def emulated_tables(found: list[Emulation]) -> dict[str, pd.DataFrame]:
    """emulated and emulated_timeline; with their columns only where nothing was emulated."""
    if not found:
        return {"emulated": pd.DataFrame(columns=EMULATED), "emulated_timeline": pd.DataFrame(columns=TIMELINE)}
    return {
        "emulated": pd.concat([emulation.iterations() for emulation in found]),
        "emulated_timeline": pd.concat([emulation.timeline() for emulation in found]),
    }


def _order(emulation: Emulation) -> tuple:
    model, method, network, workers, selection = emulation.key
    rank = _METHODS.index(method) if method in _METHODS else len(_METHODS)
    return model, network, workers, selection, rank, method

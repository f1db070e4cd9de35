"""What an emulation leaves: settings.json, iterations.csv, timeline.json and, last, summary.json."""

import csv
import io
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from suite.emulate.grid import Emulation
from suite.record.atomic import write_json, write_text
from suite.timeline import Event, Timeline, common_hidden_share
from suite.train.progress import on_terminal

if TYPE_CHECKING:
    from suite.emulate.rank import Cell, Series


def is_done(root: Path, emulation: Emulation) -> bool:
    """Whether `root` holds this very emulation, complete."""
    summary = read_summary(root / emulation.folder)
    return summary is not None and summary["hash"] == emulation.hash


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The summary of a finished emulation; None where there is none."""
    try:
        found = json.loads((folder / "summary.json").read_text())
    except (OSError, ValueError):
        return None
    return found if found.get("complete") else None


def write_record(
    folder: Path, emulation: Emulation, series: "Series", cell: "Cell", environment: dict[str, Any]
) -> dict[str, Any]:
    """Write an emulation's files; returns the summary."""
    (folder / "summary.json").unlink(missing_ok=True)
    # On one line: most of it are the times of every layer.
    write_text(folder / "settings.json", emulation.model_dump_json() + "\n")
    text = io.StringIO()
    writer = csv.DictWriter(text, ["iteration", *series.rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows({"iteration": number} | row for number, row in enumerate(series.rows))
    write_text(folder / "iterations.csv", text.getvalue())
    predicted = [asdict(event) for event in cell.predicted.condensed().events]
    write_json(folder / "timeline.json", {"unit": "seconds", "events": series.events, "predicted": predicted})
    summary = _summary(emulation, series, cell) | {"environment": environment, "complete": True}
    write_json(folder / "summary.json", summary)
    return summary


def _summary(emulation: Emulation, series: "Series", cell: "Cell") -> dict[str, Any]:
    seconds = [row["iteration_s"] for row in series.rows]
    hosts: dict[int, list[Event]] = {}
    for event in series.events:
        hosts.setdefault(event["rank"], []).append(Event(*(event[key] for key in ("phase", "label", "start", "end"))))
    timelines = [Timeline(tuple(events)) for events in hosts.values()]
    return {
        "model": emulation.model,
        "method": emulation.method["name"],
        "name": emulation.name,
        "network": emulation.network,
        "bandwidth": emulation.bandwidth,
        "workers": emulation.workers,
        "density": emulation.method.get("density"),
        "selection": emulation.selection,
        "stretch": series.stretch,
        "iterations": len(seconds),
        "messages": len(cell.exchange.plan.messages),
        # Seconds of the emulated hosts: medians over iterations; bound is what the device computes.
        "iteration_s": statistics.median(seconds),
        "predicted_s": cell.predicted.iteration,
        "bound_s": cell.bound,
        "hidden_share": common_hidden_share(timelines),
        "cpu_busy": series.busy,
        "link_bytes": statistics.median(row["link_bytes"] for row in series.rows),
        "counted_bytes": statistics.median(row["counted_bytes"] for row in series.rows),
        "hash": emulation.hash,
    }


class Progress:
    """A bar over the cells on a terminal, and a line for each finished one; silent on every host but the first."""

    def __init__(self, total: int, enabled: bool):
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.enabled = enabled
        self.bar = Bar(*columns, disable=not (enabled and on_terminal()))
        self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> "Progress":
        self.bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.bar.stop()

    def begins(self, emulation: Emulation) -> None:
        """A cell begins."""
        self.bar.update(self.task, description=emulation.title)

    def ends(self, summary: dict[str, Any]) -> None:
        """A cell is finished."""
        self.bar.update(self.task, advance=1)
        if self.enabled:
            line = (
                f"{summary['model']}, {summary['name']}, {summary['network']}, {summary['workers']} hosts: "
                f"{1e3 * summary['iteration_s']:.1f} ms ({1e3 * summary['predicted_s']:.1f} predicted, "
                f"{1e3 * summary['bound_s']:.1f} of it computing), stretch {summary['stretch']:g}, "
                f"cores {summary['cpu_busy']:.0%} busy meanwhile"
            )
            print(line)
            sys.stdout.flush()

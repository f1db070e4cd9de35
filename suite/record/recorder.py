"""Collects a run's rows in memory and writes them in columnar parts, one a checkpoint.

A part is named after the last iteration it holds, so that a resumed run can drop what came after its checkpoint.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from suite.record.atomic import replacing
from suite.record.schemas import ASSUMPTION, EPOCHS, ITERATIONS, OBSERVATIONS

_TABLES = {"iterations": ITERATIONS, "assumption": ASSUMPTION, "observations": OBSERVATIONS, "epochs": EPOCHS}


class Recorder:
    """Rows of one run; belongs to process 0."""

    def __init__(self, parts: Path):
        self.parts = parts
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _TABLES}

    def add(self, table: str, *rows: dict[str, Any]) -> None:
        """Append rows to "iterations", "assumption", "observations" or "epochs"."""
        self.rows[table] += rows

    def flush(self, iteration: int) -> None:
        """Write what was collected up to `iteration` as one part a table."""
        for name, rows in self.rows.items():
            if rows:
                _write(
                    pa.Table.from_pylist(rows, schema=_TABLES[name]), self.parts / f"{name}-{iteration:010d}.parquet"
                )
                rows.clear()

    def rewind(self, iteration: int) -> None:
        """Forget everything after `iteration`."""
        for part in self.parts.glob("*-*.parquet"):
            if int(part.stem.rpartition("-")[2]) > iteration:
                part.unlink()

    def read(self, table: str) -> pa.Table:
        """All flushed rows of a table, in order; of an epoch the last, because a run that stops inside of one for good
        tests there, and tests it again at its end when it is lengthened."""
        parts = sorted(self.parts.glob(f"{table}-*.parquet"))
        tables = [_TABLES[table].empty_table(), *(pq.read_table(part) for part in parts)]
        whole = pa.concat_tables(tables, promote_options="default")  # parts of earlier versions lack some columns
        if table != "epochs":
            return whole
        return whole.take(sorted({epoch: row for row, epoch in enumerate(whole["epoch"].to_pylist())}.values()))

    def last_timestamp(self) -> float:
        """Of the newest flushed iteration, in seconds since 1970; 0 where there is none."""
        parts = sorted(self.parts.glob("iterations-*.parquet"))
        return pq.read_table(parts[-1], columns=["timestamp"])["timestamp"][-1].as_py() if parts else 0.0

    def finish(self, folder: Path) -> None:
        """Join the parts into iterations.parquet, assumption.parquet, epochs.csv and, where a method observes anything,
        observations.parquet.
        """
        for name in ("iterations", "assumption"):
            _write(self.read(name), folder / f"{name}.parquet")
        observations = self.read("observations")
        if observations.num_rows:
            _write(observations, folder / "observations.parquet")
        with replacing(folder / "epochs.csv") as aside:
            pyarrow.csv.write_csv(
                self.read("epochs"), aside, pyarrow.csv.WriteOptions(quoting_style="none", quoting_header="none")
            )


def _write(table: pa.Table, path: Path) -> None:
    with replacing(path) as aside:
        pq.write_table(table, aside, compression="zstd")

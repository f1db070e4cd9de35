"""What the report needs of results/<profile>/, read once and checked."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from suite.errors import ConfigError

_RUN_COLUMNS = (
    "run run_id experiment title method method_name label seed workers processes transport density error_feedback "
    "metric final iterations seconds bytes_sent skipped parameters_sha256 lr collective all_reduce rounds own_bytes "
    "own_parts"
).split()
_TIME_COLUMNS = ("experiment", "method", "network", "iteration_s", "source")
_DELTA_COLUMNS = (
    "title method seed kind k_is_one segments smallest_d largest_d points above_one delta_median delta_q05 delta_q95 "
    "delta_max opposed overshoot short"
).split()


@dataclass(frozen=True)
class ProfileResults:
    """The stored results of one profile.

    Attributes:
        name: the profile.
        rule: how claims are judged, a sentence.
        runs: the table tables/runs.csv; `folder` is added, the run's folder relative to the profile's.
        run_times: the table tables/run_times.csv; without rows where it is not there.
        delta_by_kind: the table tables/delta_by_kind.csv.
        claims: the judged claims of claims.json.
        figures: the entries of figures/captions.json, each with `file`, the path without suffix.
        environments: environment.json of every run that has one.
        finished: first and last day on which a run finished an epoch (UTC), None when no run says.
    """

    name: str
    rule: str
    runs: pd.DataFrame
    run_times: pd.DataFrame
    delta_by_kind: pd.DataFrame
    claims: list[dict[str, Any]]
    figures: list[dict[str, Any]]
    environments: list[dict[str, Any]]
    finished: tuple[str, str] | None

    @classmethod
    def read(cls, results: Path) -> "ProfileResults":
        """Read a profile's folder; raises ConfigError where a file is missing or unusable."""
        runs = _read_runs(results / "tables" / "runs.csv")
        claims = _read_json(results / "claims.json", "judge them with `suite claims`")
        draw = f"draw the figures with `python -m plots --results {results}`"
        figures = _read_json(results / "figures" / "captions.json", draw)
        folders = [results / folder for folder in runs.folder]
        environments = [
            _read_json(path, "delete it and run its cell again")
            for folder in folders
            if (path := folder / "environment.json").exists()
        ]
        return cls(
            name=claims["profile"],
            rule=claims["rule"],
            runs=runs,
            run_times=_read_run_times(results / "tables" / "run_times.csv"),
            delta_by_kind=read_table(results / "tables" / "delta_by_kind.csv", _DELTA_COLUMNS),
            claims=claims["claims"],
            figures=[figure | {"file": results / "figures" / figure["name"]} for figure in figures],
            environments=environments,
            finished=_days(folders),
        )


def read_table(path: Path, columns: Iterable[str], text: Iterable[str] = ()) -> pd.DataFrame:
    """A CSV table that has at least `columns`, those in `text` as strings; raises ConfigError."""
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(text, str))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no table {path}; make it with `snakemake {path}`") from error
    except ValueError as error:  # pandas' parser errors and bad encodings are ValueErrors
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path} is not a readable CSV table ({reason}); delete it and make it again") from error
    missing = [column for column in columns if column not in table]
    if missing:
        raise ConfigError(f"{path} lacks the column {', '.join(missing)}; delete it and make it again")
    return table


def _read_runs(path: Path) -> pd.DataFrame:
    runs = read_table(path, _RUN_COLUMNS, text=("run_id", "parameters_sha256"))
    if runs.empty:
        raise ConfigError(f"{path} lists no run; train at least one cell of the profile first")
    return runs.assign(folder=["runs/" + address.partition("/")[2] for address in runs.run])


def _read_run_times(path: Path) -> pd.DataFrame:
    return read_table(path, _TIME_COLUMNS) if path.exists() else pd.DataFrame(columns=_TIME_COLUMNS)


def _read_json(path: Path, fix: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {path}; {fix}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON ({error}); {fix}") from error


def _days(folders: list[Path]) -> tuple[str, str] | None:
    times = []
    for folder in folders:
        if (folder / "epochs.csv").exists():
            times += pd.read_csv(folder / "epochs.csv", usecols=["timestamp"])["timestamp"].tolist()
    if not times:
        return None
    first, last = (datetime.fromtimestamp(time, UTC).date().isoformat() for time in (min(times), max(times)))
    return first, last

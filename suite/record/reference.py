"""Results that are kept in the repository, and how far a new run is from them.

results/reference/<profile>/ holds a profile's small results: of each run its settings, environment, epochs and summary,
but no weights and no iterations; tables, figures and verdicts.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import pandas as pd

from suite.errors import ConfigError, SuiteError
from suite.record.atomic import replacing

REFERENCE = "reference"
_OF_A_RUN = ("config.yaml", "environment.json", "epochs.csv", "summary.json")
_LARGEST = 500_000  # bytes of a file that is kept
# Tables that are computed in seconds from what is committed anyway, or say how another run compares with this one.
_LEFT_OUT = {
    "predicted.csv",
    "crossings.csv",
    "iteration_times.csv",
    "emulated.csv",
    "emulated_timeline.csv",
    "drift.csv",
    "states.csv",
}
_CONFIDENT = 0.05  # level of the paired test that calls a difference a drift
_FEWEST_SEEDS = 3  # to test at all


@dataclass(frozen=True)
class Drift:
    """A run beside the one that is kept.

    Attributes:
        state: "same bits"; "other settings", where the two cannot be compared; "close" and "drifted" as a paired test
            over the seeds of experiment and method says; "differs" where there are too few seeds to test.
        final, kept: the final test metric of both.
        p: of the paired t test, None where there was none.
    """

    experiment: str
    method: str
    seed: int
    state: str
    final: float | None
    kept: float | None
    p: float | None


def keep(results: Path) -> Path:
    """Copy what is small of a profile's results to results/reference/<profile>, in place of what was kept there.

    Raises:
        ConfigError: the profile's tables have not been built.
    """
    if not (results / "tables" / "runs.csv").exists():
        raise ConfigError(f"there are no tables in {results}; build them with `suite aggregate {results.name}`")
    target = results.parent / REFERENCE / results.name
    aside = target.with_name(f".{results.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    for path in _small_files(results):
        copy = aside / path.relative_to(results)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    return target


def _small_files(results: Path) -> Iterator[Path]:
    for summary in sorted(results.glob("runs/*/*/*/summary.json")):
        yield from (path for name in _OF_A_RUN if (path := summary.with_name(name)).exists())
    kept = [results / "claims.json", *results.glob("tables/*"), *results.glob("figures/*")]
    figures = {path.with_suffix("") for path in kept if path.suffix == ".svg" and path.stat().st_size <= _LARGEST}
    for path in sorted(kept):
        twice = path.suffix == ".png" and path.with_suffix("") in figures  # a vector graphic says it better
        if path.is_file() and path.stat().st_size <= _LARGEST and not twice and path.name not in _LEFT_OUT:
            yield path


def drift(results: Path) -> list[Drift]:
    """Each finished run of a profile that is also kept, beside the kept one; writes tables/drift.csv.

    Bits agree where processor and libraries do. Where they differ, seeds are paired and a t test asks whether the mean
    difference of the final metric can be chance (5%, two-sided; our choice).
    """
    ours, theirs = _summaries(results), _summaries(results.parent / REFERENCE / results.name)
    found = []
    for experiment, method in dict.fromkeys(key[:2] for key in ours if key in theirs):
        pairs = {key: (ours[key], theirs[key]) for key in ours if key[:2] == (experiment, method) and key in theirs}
        p = _paired([pair for pair in pairs.values() if _comparable(*pair)])
        for key, (new, old) in pairs.items():
            comparable = _comparable(new, old)
            same = comparable and new["parameters_sha256"] == old["parameters_sha256"]
            if same or not comparable:
                state = "same bits" if same else "other settings"
            else:
                state = "differs" if p is None else "drifted" if p < _CONFIDENT else "close"
            found.append(Drift(*key, state, new["final"], old["final"], p))
    path = results / "tables" / "drift.csv"
    with replacing(path) as aside:
        columns = [field.name for field in fields(Drift)]
        pd.DataFrame([astuple(one) for one in found], columns=columns).to_csv(aside, index=False)
    return found


def _summaries(results: Path) -> dict[tuple[str, str, int], dict]:
    """By experiment, method and seed: the summaries of finished runs with the settings that decide over their bits."""
    out = {}
    for path in sorted(results.glob("runs/*/*/*/summary.json")):
        try:
            summary = json.loads(path.read_text())
            if summary.get("complete"):
                *_, experiment, method, seed = path.parent.parts
                out[experiment, method, int(seed)] = summary
        except (OSError, ValueError) as error:
            raise SuiteError(f"{path} is damaged; remove {path.parent} and run its cell again") from error
    return out


def _comparable(new: dict, old: dict) -> bool:
    """Whether two summaries are of the same settings, as far as both tell: those of earlier versions lack some keys."""
    known = [key for key in ("iterations", "data_sha256", "parameters", "density") if key in new and key in old]
    return all(new[key] == old[key] for key in known)


def _paired(pairs: list[tuple[dict, dict]]) -> float | None:
    """p of the paired t test of the final metric; None for fewer than three seeds."""
    from scipy import stats

    if len(pairs) < _FEWEST_SEEDS:
        return None
    differences = [new["final"] - old["final"] for new, old in pairs]
    if len(set(differences)) == 1:
        return 1.0 if differences[0] == 0 else 0.0  # without any spread there is nothing to test
    return float(stats.ttest_1samp(differences, 0).pvalue)

"""From claims and tables to verdicts."""

from pathlib import Path
from typing import Any

import numpy as np

from suite.claims.measures import Tables, read_tables, values_by_seed
from suite.claims.model import Check, Claim, all_claims
from suite.record.atomic import write_json

MIN_SEEDS = 3
CONFIDENCE = 0.90  # two-sided; read one-sided it is the usual 5% level of a non-inferiority test


def judge_claims(results: Path) -> dict[str, Any]:
    """Judge every claim of every replication by a profile's tables and write results/<profile>/claims.json.

    Returns:
        What was written: {"profile", "rule", "claims": [...]}.
    """
    tables = read_tables(results)
    rule = (
        f"Held: the {CONFIDENCE:.0%} t interval of the mean over seeds lies within the bounds; not held: outside; "
        f"undecided otherwise, and with fewer than {MIN_SEEDS} seeds."
    )
    verdicts = {
        "profile": results.name,
        "rule": rule,
        "claims": [judge(claim, results.name, tables) for claim in all_claims()],
    }
    write_json(results / "claims.json", verdicts)
    return verdicts


def judge(claim: Claim, profile: str, tables: Tables) -> dict[str, Any]:
    """One claim's entry of claims.json."""
    out = {
        "id": claim.id, "text": claim.text, "source": claim.source, "judged_by": list(claim.judged_by),
        "scope": claim.scope.get(profile, ""), "checks": [],
    }  # fmt: skip
    if profile not in claim.judged_by:
        where = f"profile {' or '.join(claim.judged_by)} would judge it" if claim.judged_by else ""
        return out | {"verdict": "not judged", "reason": "; ".join(part for part in (claim.not_judged, where) if part)}
    checks = [_judge_check(check, tables) for check in claim.checks]
    out["checks"] = checks
    undecided = [check for check in checks if check["held"] is None]
    failed = [check for check in checks if check["held"] is False]
    if failed:
        reason = "; ".join(f"{check['name']}: {check['reason']}" for check in failed)
        return out | {"verdict": "not reproduced", "reason": reason}
    if undecided:
        reason = "; ".join(f"{check['name']}: {check['reason']}" for check in undecided)
        return out | {"verdict": "not judged", "reason": reason}
    return out | {"verdict": "reproduced", "reason": "; ".join(check["reason"] for check in checks)}


def _judge_check(check: Check, tables: Tables) -> dict[str, Any]:
    values, runs = values_by_seed(check, tables)
    bounds = " and ".join(
        f"{word} {bound:g}" for word, bound in (("at least", check.low), ("at most", check.high)) if bound is not None
    )
    entry = {
        "name": check.name, "expected": check.expected, "required": bounds, "unit": check.unit, "runs": runs,
        "seeds": len(values),
        "value": float(values.mean()) if len(values) else None,
        "spread": float(values.std(ddof=1)) if len(values) > 1 else None, "interval": None, "held": None,
    }  # fmt: skip
    if not len(values):
        return entry | {"reason": f"no finished runs of experiment {check.experiment} measured it"}
    if entry["seeds"] < MIN_SEEDS:
        return entry | {"reason": f"{entry['seeds']} seeds, at least {MIN_SEEDS} are needed"}
    low, high = _interval(values.to_numpy())
    entry["interval"] = [low, high]
    floor = -np.inf if check.low is None else check.low
    ceiling = np.inf if check.high is None else check.high
    unit = f" {check.unit}" if check.unit else ""
    measured = f"{entry['value']:.4g}{unit} (interval {low:.4g} to {high:.4g}), {bounds} required"
    if floor <= low and high <= ceiling:
        return entry | {"held": True, "reason": measured}
    if high < floor or low > ceiling:
        return entry | {"held": False, "reason": measured}
    return entry | {"reason": f"{measured}: {_more_seeds(values.to_numpy(), floor, ceiling)}"}


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The t interval of the mean; a point when all seeds agree exactly."""
    from scipy import stats

    mean, error = values.mean(), stats.sem(values)
    if error == 0:
        return float(mean), float(mean)
    low, high = stats.t.interval(CONFIDENCE, len(values) - 1, loc=mean, scale=error)
    return float(low), float(high)


def _more_seeds(values: np.ndarray, floor: float, ceiling: float) -> str:
    """How many seeds would bring the nearest bound out of the interval, if mean and spread stayed as they are."""
    from scipy import stats

    margin = min(abs(values.mean() - floor), abs(values.mean() - ceiling))
    if margin == 0:
        return f"{len(values)} seeds cannot decide, and the mean lies on the bound"
    sd = values.std(ddof=1)
    needed = next(
        (n for n in range(len(values) + 1, 1001) if stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * sd / n**0.5 < margin),
        None,
    )
    would = f"about {needed} would" if needed else "more than 1000 would be needed"
    return f"{len(values)} seeds cannot decide, {would}"

"""From claims and tables to verdicts."""

from pathlib import Path
from typing import Any

import numpy as np

from suite.claims.measures import Tables, Values, read_tables, values_by_seed
from suite.claims.model import Check, Claim, RunCheck, all_claims
from suite.claims.times import values_of_times
from suite.record.atomic import write_json
from suite.words import plural

MIN_VALUES = 3
CONFIDENCE = 0.90  # two-sided; read one-sided it is the usual 5% level of a non-inferiority test


def judge_claims(results: Path) -> dict[str, Any]:
    """Judge every claim of every replication by a profile's tables and write results/<profile>/claims.json.

    Returns:
        What was written: {"profile", "rule", "claims": [...]}.
    """
    tables = read_tables(results)
    rule = (
        f"Held: the {CONFIDENCE:.0%} t interval of the mean lies within the bounds; not held: outside; undecided "
        f"otherwise, and with fewer than {MIN_VALUES} values. Training runs give a value a seed. An emulation gives a "
        "value an iteration: its interval says how steady that emulation was, not how another machine's would differ. "
        "A prediction is computed, not measured: one value without an interval, held or not, which decides over a "
        "claim only where everything was measured that the claim asks for. A check that decides nothing is of another "
        "network than the claim's."
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
    out["checks"] = [_judge_check(check, tables) for check in claim.checks]
    checks = [check for check in out["checks"] if check["decides"]]
    failed = [check for check in checks if check["held"] is False]
    undecided = [check for check in checks if check["held"] is None]
    unmeasured = any(check["value"] is None for check in checks)
    if failed and (not unmeasured or any(check["evidence"] != "predicted" for check in failed)):
        verdict, deciding = "not reproduced", failed
    elif undecided:
        verdict, deciding = "not judged", undecided
    else:
        return out | {"verdict": "reproduced", "reason": "; ".join(check["reason"] for check in checks)}
    return out | {"verdict": verdict, "reason": "; ".join(f"{check['name']}: {check['reason']}" for check in deciding)}


def _judge_check(check: Check, tables: Tables) -> dict[str, Any]:
    found = values_by_seed(check, tables) if isinstance(check, RunCheck) else values_of_times(check, tables)
    values = found.values.to_numpy()
    entry = {
        "name": check.title, "expected": check.expected, "required": check.required, "unit": check.unit,
        "decides": not check.beside, "evidence": check.evidence, "model": found.model, "runs": found.runs,
        "count": len(values), "each": found.each,
        "value": float(values.mean()) if len(values) else None,
        "spread": float(values.std(ddof=1)) if len(values) > 1 else None, "interval": None, "held": None,
    }  # fmt: skip
    if not len(values):
        return entry | {"reason": found.missing}
    predicted = check.evidence == "predicted"
    if not predicted and len(values) < MIN_VALUES:
        return entry | {"reason": f"{plural(len(values), found.each)}, at least {MIN_VALUES} are needed"}
    low, high = (entry["value"], entry["value"]) if predicted else _interval(values)
    if not predicted:
        entry["interval"] = [low, high]
    floor = -np.inf if check.low is None else check.low
    ceiling = np.inf if check.high is None else check.high
    unit = f" {check.unit}" if check.unit else ""
    how = "predicted" if predicted else f"interval {low:.4g} to {high:.4g}"
    whose = f" by {found.model}" if found.model else ""
    measured = f"{entry['value']:.4g}{unit}{whose} ({how}), {check.required} required"
    if floor <= low and high <= ceiling:
        return entry | {"held": True, "reason": measured}
    if high < floor or low > ceiling:
        return entry | {"held": False, "reason": measured}
    return entry | {"reason": f"{measured}: {_more_values(found, floor, ceiling)}"}


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The t interval of the mean; a point when all values agree exactly."""
    from scipy import stats

    mean, error = values.mean(), stats.sem(values)
    if error == 0:
        return float(mean), float(mean)
    low, high = stats.t.interval(CONFIDENCE, len(values) - 1, loc=mean, scale=error)
    return float(low), float(high)


def _more_values(found: Values, floor: float, ceiling: float) -> str:
    """How many values would bring the nearest bound out of the interval, if mean and spread stayed as they are."""
    from scipy import stats

    values = found.values.to_numpy()
    margin = min(abs(values.mean() - floor), abs(values.mean() - ceiling))
    if margin == 0:
        return f"{plural(len(values), found.each)} cannot decide, and the mean lies on the bound"
    sd = values.std(ddof=1)
    needed = next(
        (n for n in range(len(values) + 1, 1001) if stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * sd / n**0.5 < margin),
        None,
    )
    would = f"about {needed} would" if needed else "more than 1000 would be needed"
    return f"{plural(len(values), found.each)} cannot decide, {would}"

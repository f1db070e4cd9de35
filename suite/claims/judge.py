"""From claims and tables to verdicts."""

from pathlib import Path
from typing import Any

import numpy as np

from suite.claims import statistics
from suite.claims.measures import Tables, Values, read_tables, values_of_runs
from suite.claims.model import Check, Claim, RunCheck, TimeCheck, claims_of
from suite.claims.times import values_of_times, values_predicted
from suite.record.atomic import write_json
from suite.words import listing, p_text, plural

MIN_VALUES = 3


def judge_claims(results: Path) -> dict[str, Any]:
    """Judge the claims of a profile's replication by the profile's tables and write results/<profile>/claims.json.

    Returns:
        What was written: {"profile", "rule", "claims": [...]}.
    """
    tables = read_tables(results)
    rule = (
        f"Held: a one-sided t test at {statistics.ALPHA:.0%} shows the mean to lie within each bound, or, which is the "
        f"same, its {statistics.CONFIDENCE:.0%} t interval lies within them; not held: it is shown to lie beyond one; "
        f"undecided otherwise, and with fewer than {MIN_VALUES} values, and before every run is finished. Means alone "
        "decide nothing. Training runs give a value a seed, paired by seed where two methods are compared. An "
        "emulation gives a value an iteration: its interval says how steady that emulation was, not how another "
        "machine's would differ. A prediction is computed, not measured: one value without an interval, held or not, "
        "which decides over a claim only where everything was measured that the claim asks for. A check that decides "
        "nothing stands beside: it is of another network than the claim's, or of too few runs. Bootstrap intervals and "
        "tests of equivalence stand beside as well."
    )
    verdicts = {
        "profile": results.name,
        "rule": rule,
        "claims": [judge(claim, results.name, tables) for claim in claims_of(results.name)],
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
    if not claim.checks:
        return out | {"verdict": "not judged", "reason": claim.not_judged or "nothing measures it yet"}
    out["checks"] = [_judge_check(check, tables) for check in claim.checks_for(profile)]
    checks = [check for check in out["checks"] if check["decides"]]
    failed = [check for check in checks if check["held"] is False]
    undecided = [check for check in checks if check["held"] is None]
    measured = all(check["measured"] for check in checks)
    if failed and (measured or any(check["evidence"] != "predicted" for check in failed)):
        verdict, deciding = "not reproduced", failed
    elif undecided:
        verdict, deciding = "not judged", undecided
    else:
        return out | {"verdict": "reproduced", "reason": "; ".join(check["reason"] for check in checks)}
    by_reason: dict[str, list[str]] = {}
    for check in deciding:
        by_reason.setdefault(check["reason"], []).append(check["name"])
    return out | {
        "verdict": verdict,
        "reason": "; ".join(f"{listing(names)}: {why}" for why, names in by_reason.items()),
    }


def _judge_check(check: Check, tables: Tables) -> dict[str, Any]:
    found = _values(check, tables)
    values = found.values.to_numpy(dtype=float)
    entry = {
        "name": check.title, "expected": check.expected, "required": check.required, "unit": check.unit,
        "decides": not check.beside, "evidence": check.evidence, "model": found.model, "runs": found.runs,
        "count": len(values), "each": found.each,
        "measured": not found.missing and len(values) >= (1 if check.evidence == "predicted" else MIN_VALUES),
        "value": float(values.mean()) if len(values) else None,
        "spread": float(values.std(ddof=1)) if len(values) > 1 else None, "interval": None, "bootstrap_interval": None,
        "p_within": None, "p_beyond": None, "equivalence": None, "needed": None, "held": None,
    }  # fmt: skip
    if not len(values):
        return entry | {"reason": found.missing}
    if check.evidence == "predicted":
        return entry | _compared(check, entry, found)
    if len(values) < MIN_VALUES and not found.missing:
        return entry | {"reason": f"{plural(len(values), found.each)}, at least {MIN_VALUES} are needed"}
    if len(values) >= MIN_VALUES:
        entry |= _tested(check, values)
    if found.missing:
        return entry | {"held": None, "needed": None, "reason": found.missing}
    return entry | {"reason": _in_words(check, entry, found)}


def _values(check: Check, tables: Tables) -> Values:
    if isinstance(check, RunCheck):
        return values_of_runs(check, tables)
    return values_of_times(check, tables) if isinstance(check, TimeCheck) else values_predicted(check)


def _compared(check: Check, entry: dict[str, Any], found: Values) -> dict[str, Any]:
    """A prediction lies within its bounds or does not."""
    return {"held": _inside(entry["value"], check), "reason": _measured(check, entry, found, "predicted")}


def _inside(value: float, check: Check) -> bool:
    return (check.low is None or value >= check.low) and (check.high is None or value <= check.high)


def _tested(check: Check, values: np.ndarray) -> dict[str, Any]:
    """Intervals, tests and, where they leave it open, how many values would decide; what decides is `held`."""
    within, beyond = {}, []
    if check.low is not None:
        within["low"] = statistics.p_above(values, check.low)
        beyond.append(statistics.p_below(values, check.low))
    if check.high is not None:
        within["high"] = statistics.p_below(values, check.high)
        beyond.append(statistics.p_above(values, check.high))
    held = True if max(within.values()) < statistics.ALPHA else False if min(beyond) < statistics.ALPHA else None
    out = {
        "interval": list(statistics.t_interval(values)),
        "bootstrap_interval": list(statistics.bootstrap_interval(values)), "p_within": within,
        "p_beyond": min(beyond), "held": held,
    }  # fmt: skip
    margin = getattr(check, "equivalence", None)
    if margin is not None:
        found = statistics.equivalence(values, margin)
        out["equivalence"] = {"margin": margin, "p_low": found.p_low, "p_high": found.p_high, "shown": found.shown}
    if held is None:
        mean, spread = float(values.mean()), float(values.std(ddof=1))
        out["needed"] = {
            "power": statistics.POWER,
            "as_measured": statistics.values_needed(mean, spread, check.low, check.high),
        }
        neutral = getattr(check, "neutral", None)
        if neutral is not None and neutral not in (check.low, check.high) and _inside(neutral, check):
            out["needed"]["no_difference"] = statistics.values_needed(neutral, spread, check.low, check.high)
    return out


def _in_words(check: Check, entry: dict[str, Any], found: Values) -> str:
    """Why a tested check is held, not held or open: one sentence."""
    low, high = entry["interval"]
    tests = " and ".join(f"p {p_text(p)}" for p in entry["p_within"].values())
    if entry["held"] is False:
        tests = f"beyond the bound with p {p_text(entry['p_beyond'])}"
    how = f"{statistics.CONFIDENCE:.0%} interval {low:.4g} to {high:.4g}, {tests}"
    measured = _measured(check, entry, found, how)
    if entry["equivalence"]:
        test = entry["equivalence"]
        shown = "shown" if test["shown"] else "not shown"
        worse = p_text(max(test["p_low"], test["p_high"]))
        measured += f" (equivalence within {test['margin']:g} on both sides is {shown}, p {worse})"
    return f"{measured}: {_more_values(entry)}" if entry["held"] is None else measured


def _measured(check: Check, entry: dict[str, Any], found: Values, how: str) -> str:
    unit = f" {check.unit}" if check.unit else ""
    whose = f" by {found.model}" if found.model else ""
    note = f"; {found.note}" if found.note else ""
    return f"{entry['value']:.4g}{unit}{whose} ({how}), {check.required} required{note}"


def _more_values(entry: dict[str, Any]) -> str:
    """How many values would decide."""
    needed, each = entry["needed"], entry["each"]

    def count(number: int | None) -> str:
        return "more than 1000" if number is None else f"about {number}"

    text = f"{plural(entry['count'], each)} cannot decide; with this spread {count(needed['as_measured'])} would"
    if "no_difference" in needed:
        text += f", {count(needed['no_difference'])} if in truth the methods did not differ"
    return text

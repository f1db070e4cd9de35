"""claims.json of the synthetic profile: every verdict, and checks of all three kinds of evidence."""

from typing import Any


def claims(ids: list[str]) -> dict[str, Any]:
    """What judging would have written; `ids` are the runs that checks of training runs cite."""

    def claim(name, verdict, text, reason="", scope="", checks=(), judged_by=("laptop", "cifar")):
        return {
            "id": name, "text": text, "source": "reading notes, section 4", "verdict": verdict, "reason": reason,
            "judged_by": list(judged_by), "scope": scope, "checks": list(checks),
        }  # fmt: skip

    def check(name, expected, required, value, unit, spread, interval, held):
        return {
            "name": name, "expected": expected, "required": required, "value": value, "unit": unit, "spread": spread,
            "interval": interval, "bootstrap_interval": interval,
            "p_within": interval and {"low": 0.0004 if held else 0.9996},
            "p_beyond": interval and (0.9996 if held else 0.0004), "equivalence": None, "needed": None, "count": 3,
            "each": "seed", "evidence": "runs", "model": "", "decides": True, "held": held, "runs": ids,
        }  # fmt: skip

    def timed(name, value, held, **others):
        return check(name, "up to 1.30", "at least 1.25", value, "", None, others.get("interval"), held) | others

    within, share = [-0.6, 0.4], [99.2, 99.9]
    emulation = {"evidence": "emulated", "each": "emulated iteration", "count": 8, "model": "ResNet-50"}
    prediction = {"evidence": "predicted", "each": "prediction", "count": 1, "model": "LSTM-PTB", "runs": []}
    return {
        "profile": "laptop",
        "rule": "Held: the 90% t interval of the mean lies within the bounds.",
        "claims": [
            claim(
                "S1",
                "not reproduced",
                "On 16 GPUs joined by 10 Gb/s Ethernet, LAGS-SGD trains up to 30% faster than dense S-SGD.",
                scope="16 emulated hosts stand in for 16 GPUs",
                checks=[
                    timed(
                        "dense over LAGS, 10 GbE, emulated",
                        0.97,
                        False,
                        spread=0.01,
                        interval=[0.96, 0.98],
                        **emulation | {"runs": ["results/reference/emulated/10gbe/16/ResNet-50/lags"]},
                    ),
                    timed("dense over LAGS, 10 GbE, predicted", 0.95, False, **prediction),
                    timed("dense over LAGS, 1 GbE, predicted", 4.7, True, **prediction | {"decides": False}),
                ],
            ),
            claim(
                "S4",
                "reproduced",
                "The top-1 accuracy of LAGS-SGD stays within 0.3 points of dense S-SGD.",
                scope="ResNet-20 on handwritten digits stands in for CIFAR-10",
                checks=[
                    check(
                        "accuracy gap to dense", "within 0.3 points", "at least -1", -0.12, "points", 0.21, within, True
                    )
                    | {
                        "equivalence": {"margin": 0.3, "p_low": 0.02, "p_high": 0.2, "shown": False},
                        "needed": {"power": 0.8, "as_measured": 17, "no_difference": None},
                    }
                ],  # fmt: skip
            ),
            claim(
                "S7",
                "not reproduced",
                "The assumption behind the convergence proof holds throughout training.",
                checks=[
                    check("share of delta at most 1", "all of it", "at least 100", 99.6, "%", 0.05, share, False),
                    check("mean delta", "at most 1", "at most 1", 0.98, "", None, None, None),
                ],
            ),
            claim(
                "RQ5",
                "not judged",
                "How does the ratio of communication to computation affect LAGS-SGD?",
                "a question, answered by the emulated network",
                judged_by=(),
            ),
        ],
    }

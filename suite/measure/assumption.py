"""The paper's analytical assumption, measured on the gradients of a real run (arXiv 1911.08727, Assumption 1).

With x = (1/P) sum_p acc_p and s = (1/P) sum_p TopK(acc_p, k), for each segment of d entries:

    delta      = ||x - s||^2 / ((1 - k/d) ||x||^2)      closed form of E ||x - RandK(x, k)||^2
    delta_random = ||x - s||^2 / ||x - RandK(x, k)||^2  one draw, as the authors' code takes it
    norm_ratio = ||s|| / ||x||

The assumption holds in that segment and iteration iff delta <= 1. It can fail: see `delta_of`.
"""

import numpy as np

from suite.plan import Plan, Segment


class AssumptionMeter:
    """Measures every segment of a plan in one pass; the random draws are a function of (seed, iteration)."""

    def __init__(self, seed: int, random_draw: bool):
        self.seed = seed
        self.random_draw = random_draw

    def rows(self, plan: Plan, iteration: int, mean_acc: np.ndarray, mean_sent: np.ndarray) -> list[dict]:
        """One row a segment.

        Args:
            plan: with k in every segment.
            iteration: counted from 1.
            mean_acc: x, float32 [d].
            mean_sent: s, float32 [d].
        """
        x_energy = np.square(mean_acc, dtype=np.float64)
        error = np.square(np.subtract(mean_acc, mean_sent, dtype=np.float64))
        s_energy = np.square(mean_sent, dtype=np.float64)
        rng = np.random.default_rng([self.seed, iteration, 0xDE17A])
        rows = []
        for segment in sorted(plan.segments, key=lambda s: s.start):
            part = slice(segment.start, segment.stop)
            missed, x2, s2 = float(error[part].sum()), float(x_energy[part].sum()), float(s_energy[part].sum())
            row = {"iteration": iteration, "segment": segment.name, "d": segment.size, "k": segment.k}
            row["delta"] = delta_of(missed, x2, segment.k, segment.size)
            row["delta_random"] = self._one_draw(rng, segment, missed, x2, x_energy[part]) if self.random_draw else None
            row["norm_ratio"] = (s2 / x2) ** 0.5 if x2 > 0 else None
            rows.append(row)
        return rows

    @staticmethod
    def _one_draw(
        rng: np.random.Generator, segment: Segment, missed: float, x2: float, energy: np.ndarray
    ) -> float | None:
        kept = rng.choice(segment.size, segment.k, replace=False, shuffle=False)
        left = x2 - float(energy[kept].sum())
        # k = d leaves nothing; rounding may leave a trace of it, far below anything a real draw leaves.
        return missed / left if left > 1e-12 * x2 and x2 > 0 else None


def delta_of(missed: float, x2: float, k: int, d: int) -> float | None:
    """delta in its closed form; no value where x is zero or everything is sent (0 <= 0 holds trivially).

    Not a quantity bounded by 1: two workers whose own top-k entries cancel make missed == x2, so delta = 1 / (1 - k/d).

    Args:
        missed: ||x - s||^2.
        x2: ||x||^2.
    """
    return missed / ((1 - k / d) * x2) if x2 > 0 and k < d else None

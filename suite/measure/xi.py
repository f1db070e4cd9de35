"""What the analysis of Alistarh et al. assumes (arXiv 1809.10505, Assumption 1), measured on a real run's gradients.

With x = (1/P) sum_p acc_p, s = (1/P) sum_p TopK(acc_p) and G the average gradient, for each segment:

    xi          = ||TopK(x) - s|| / ||a G||     a: the learning rate where acc holds lr * gradient, else 1
    error_ratio = ||G - TopK(G)|| / ||G||       what top-k alone would leave out of the average gradient

The assumption is that xi stays below a constant. With one worker or k = d it is zero.
"""

import torch

from suite.compress import select_topk
from suite.plan import Plan


def xi_rows(plan: Plan, mean_acc: torch.Tensor, mean_sent: torch.Tensor, mean_gradient: torch.Tensor) -> list[dict]:
    """Rows of observations.parquet without their iteration; none of a quantity whose gradient is zero.

    Args:
        plan: with k in every segment.
        mean_acc: x, float32 [d].
        mean_sent: s, float32 [d].
        mean_gradient: a G, float32 [d].
    """
    rows = []
    for segment in sorted(plan.segments, key=lambda s: s.start):
        x, s, g = (vector[segment.start : segment.stop] for vector in (mean_acc, mean_sent, mean_gradient))
        norm = float(g.double().norm())
        if norm == 0:
            continue
        gap = -s.double()
        _add_topk(gap, x, segment.k)
        error = g.double().neg()
        _add_topk(error, g, segment.k)
        values = {"xi": float(gap.norm()) / norm, "error_ratio": float(error.norm()) / norm}
        rows += [{"segment": segment.name, "quantity": name, "value": value} for name, value in values.items()]
    return rows


def _add_topk(out: torch.Tensor, x: torch.Tensor, k: int) -> None:
    values, indices = select_topk(x, k)
    out.index_add_(0, indices, values.double())

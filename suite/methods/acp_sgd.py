"""ACP-SGD: one of a matrix's two low-rank factors an iteration, in turn (Zhang et al. 2023, arXiv 2306.08881).

With n x m matrices and d1 entries in tensors of one dimension, which travel whole, a worker sends 4 * 2(P-1)/P *
(r sum(n) + d1) bytes in one iteration and (r sum(m) + d1) in the next: on average half of what Power-SGD sends of
matrices, by one ring all-reduce. The factor that stays is the average of the iteration before, made orthonormal; the
residual is what a worker's own factor misses (authors' code, lzhangbv/acpsgd). Workers begin with the same random
factors, which follow from the run's seed. Predictions take the average bytes and no time for computing factors.
"""

from typing import Literal

from suite.methods.base import LowRankSettings, Method
from suite.methods.registry import register
from suite.plan import Layout, Plan, low_rank


class ACPSGDSettings(LowRankSettings):
    """Settings of ACP-SGD."""

    name: Literal["acp_sgd"] = "acp_sgd"


@register
class ACPSGD(Method):
    """Alternately P = M Q and Q = M^T P of every matrix, averaged by all-reduce."""

    Settings = ACPSGDSettings
    label = "ACP-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return self.in_messages(low_rank(layout, self.settings.rank, share=0.5), layout)

    def compressor(self):
        from suite.compress import AlternatingLowRank

        return AlternatingLowRank(self.settings.rank)

"""Power-SGD: every matrix as two factors of rank r, with error feedback (Vogels et al. 2019, arXiv 1905.13727).

A matrix is a tensor's first dimension by all others; tensors of one dimension, d1 entries in all, travel whole. With
n x m matrices a worker sends 4 * 2(P-1)/P * (r sum(n + m) + d1) bytes by ring all-reduces, of which the second of a
message, Q = M^T P, waits for the first, P = M Q, to arrive and be made orthonormal. Q is where the next iteration
begins. The residual is what the average approximation misses (authors' code, epfml/powersgd). Predictions count the two
all-reduces and no time for computing factors.
"""

from typing import Literal

from suite.config.costs import LinearCost, NetworkCosts
from suite.methods.base import LowRankSettings, Method
from suite.methods.registry import register
from suite.plan import Layout, Plan, low_rank


class PowerSGDSettings(LowRankSettings):
    """Settings of Power-SGD."""

    name: Literal["power_sgd"] = "power_sgd"


@register
class PowerSGDMethod(Method):
    """One step of subspace iteration an iteration on every matrix; both factors are averaged by all-reduce."""

    Settings = PowerSGDSettings
    label = "Power-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return self.in_messages(low_rank(layout, self.settings.rank), layout)

    def compressor(self):
        from suite.compress import PowerSGD

        return PowerSGD(self.settings.rank)

    def collective(self, network: NetworkCosts, sparse: bool) -> LinearCost:
        line = network.all_reduce
        return LinearCost(start=2 * line.start, per_byte=line.per_byte)

    def collective_name(self, sparse: bool) -> str:
        return "two ring all-reduces, one after the other"

"""gTop-k S-SGD: one global choice of k entries, made up a binomial tree of workers (Shi et al., arXiv 1901.04359).

A message is 8k bytes. A worker sends 2 (P-1)/P of them on average, and worker 0 sends and receives 2 ceil(log2 P). The
time is that of 2 ceil(log2 P) messages, as in the authors' scripts (their README prints half of the second term). These
bytes are counted, and these times predicted. Here everybody computes the whole tree from gathered payloads (see
suite/compress/tree.py), so that what really travels are the (P-1) 8k bytes of an all-gather.

The published rule puts an entry back into its worker's residual if the global choice lacks its index. With three
workers or more that loses gradient: an index that one merge has dropped may be chosen through another subtree. Two
rules of ours lose nothing. Under `exact` the worker that merged keeps what it dropped; no further message is needed,
but what all have lost gathers where most merges are. Under `owners` everybody keeps what was dropped of its own, for
which the way down carries one more bit for each of the k entries that a worker had sent up.
"""

from math import ceil, log2
from typing import Literal

from pydantic import Field

from suite.config.costs import LinearCost, NetworkCosts
from suite.methods.base import DensitySettings, FeedbackSettings, Method
from suite.methods.registry import register
from suite.plan import Layout, Plan, whole_gradient


class GTopKSettings(DensitySettings, FeedbackSettings):
    """Settings of gTop-k S-SGD."""

    name: Literal["gtopk"] = "gtopk"
    repair: Literal["published", "exact", "owners"] = Field(
        "published",
        description="what returns to a worker's residual. published: its entries whose index the global choice lacks; "
        "exact: what it dropped when it merged; owners: its entries that any merge dropped",
    )


@register
class GTopK(Method):
    """Of everybody's top-k entries the k whose sums are largest, as pairwise merges find them."""

    Settings = GTopKSettings
    label = "gTop-k S-SGD"

    def plan(self, layout: Layout, epoch: int) -> Plan:
        return whole_gradient(layout, self.settings.density_at(epoch))

    def compressor(self):
        from suite.compress import TreeTopK

        return TreeTopK(self.settings.repair if self.settings.error_feedback else None)

    @property
    def _both_ways(self) -> float:
        """Messages up and down, for each edge of the tree."""
        return 2 + (1 / 64 if self.settings.repair == "owners" else 0)

    def collective(self, network: NetworkCosts, sparse: bool) -> LinearCost:
        link, rounds = network.link, ceil(log2(network.workers))
        return LinearCost(start=2 * rounds * link.start, per_byte=self._both_ways * rounds * link.per_byte)

    def traffic(self, workers: int, sparse: bool) -> float:
        return self._both_ways * (workers - 1) / workers

    def collective_name(self, sparse: bool) -> str:
        return "binomial tree, up and down"

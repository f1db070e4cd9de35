"""Communication-efficient distributed SGD: methods, exchange, measurement and claims.

Everything is reachable from the command line (`suite --help`); docs/architecture.md shows how the rooms fit together.
"""

from typing import Any

__version__ = "0.1.0"
__all__ = ["DistributedOptimizer"]


def __getattr__(name: str) -> Any:
    """`suite.DistributedOptimizer`, looked up late: most of what imports this package does not need torch."""
    if name == "DistributedOptimizer":
        from suite.train.distributed import DistributedOptimizer

        return DistributedOptimizer
    raise AttributeError(f"module 'suite' has no attribute {name!r}")

"""Communication-efficient distributed SGD: methods, exchange, measurement and claims.

Everything is reachable from the command line (`suite --help`); docs/architecture.md shows how the rooms fit together.
"""

__version__ = "0.1.0"

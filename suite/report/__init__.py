"""One self-contained page from a profile's stored results: no network, no scripts, no other files.

It reads tables, figures, claims and environments from results/<profile>/ and computes nothing but their summaries.
"""

from suite.report.build import build_report

__all__ = ["build_report"]

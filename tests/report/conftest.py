"""A report of synthetic results, built once for all tests of the room."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# `plots` is not installed, and the synthetic results live with its tests.
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "plots")]


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The folder of a synthetic profile with tables, figures, claims and report.html; tests must not change it."""
    from synthetic import write_results

    from plots.gallery import draw_all
    from suite.report import build_report

    results = write_results(tmp_path_factory.mktemp("report"))
    draw_all(results)
    build_report(results, ROOT / "replications")
    return results

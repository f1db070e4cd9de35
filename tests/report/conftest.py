"""A report of synthetic results, built once for all tests of the room."""

from pathlib import Path

import pytest

from helpers import ROOT


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The folder of a synthetic profile with tables, figures, claims and report.html; tests must not change it."""
    from plots.gallery import draw_all
    from suite.report import build_report
    from synthetic import write_results

    results = write_results(tmp_path_factory.mktemp("report"))
    draw_all(results)
    build_report(results, ROOT / "replications")
    return results

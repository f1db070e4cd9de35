"""Synthetic results for the figures."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Path:
    """The folder of a synthetic profile with all figures drawn; tests must not change it."""
    from plots.gallery import draw_all
    from synthetic import write_results

    results = write_results(tmp_path_factory.mktemp("plots"))
    draw_all(results)
    return results

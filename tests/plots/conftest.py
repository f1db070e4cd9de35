"""Synthetic results for the figures."""

import sys
from pathlib import Path

import pytest

# `plots` is not installed; it is run from the root of the checkout.
sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def drawn(tmp_path_factory) -> Path:
    """The folder of a synthetic profile with all figures drawn; tests must not change it."""
    from synthetic import write_results

    from plots.gallery import draw_all

    results = write_results(tmp_path_factory.mktemp("plots"))
    draw_all(results)
    return results

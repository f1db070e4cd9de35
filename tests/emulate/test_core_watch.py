"""The busy share counts the time in which messages travel."""

import pytest

from suite.emulate import cores
from suite.emulate.cores import CoreWatch


@pytest.fixture
def watch(monkeypatch):
    """Two cores: idle in the first second, one busy in the second, both in the third, idle in the fourth."""
    monkeypatch.setattr(cores, "_EVERY_SECONDS", 3600)
    found = CoreWatch()
    found._samples = [(0.0, 0.0, 0.0), (1.0, 2.0, 2.0), (2.0, 3.0, 4.0), (3.0, 3.0, 6.0)]
    monkeypatch.setattr(cores, "_sample", lambda: (4.0, 5.0, 8.0))
    return found


@pytest.mark.parametrize(
    "spans, share",
    [([(1.0, 2.0)], 0.5), ([(2.0, 2.9)], 1.0), ([(1.0, 1.5), (2.5, 3.0)], 0.75), ([(3.2, 3.3)], 0.0), ([], 3 / 8)],
)
def test_shares(watch, spans, share):
    assert watch.busy(spans) == pytest.approx(share)

"""The fitted lines find what they were made from, and a real world's file goes where it should."""

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.config.costs import NetworkCosts
from suite.config.experiment import WorldConfig
from suite.measure.network import SIZES, fit_line, sizes_that_fit


@given(start=st.floats(1e-6, 1e-2), per_byte=st.floats(1e-11, 1e-7))
def test_a_line_is_found_exactly(start: float, per_byte: float):
    line = fit_line(list(SIZES), [start + per_byte * size for size in SIZES])
    assert line.start == pytest.approx(start, rel=1e-6) and line.per_byte == pytest.approx(per_byte, rel=1e-6)
    assert line.deviation < 1e-9 and not line.clipped


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_small_times_count_as_much_as_large_ones(seed: int):
    """With 5% noise the start is still found, though the largest time is thousands of starts."""
    noise = 1 + 0.05 * np.random.default_rng(seed).standard_normal(len(SIZES))
    line = fit_line(list(SIZES), [float(f * (1e-4 + 1e-8 * size)) for f, size in zip(noise, SIZES, strict=True)])
    assert line.start == pytest.approx(1e-4, rel=0.2) and line.per_byte == pytest.approx(1e-8, rel=0.2)


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(0)
    covered = np.zeros(2)
    for _ in range(300):
        noise = 1 + 0.05 * rng.standard_normal(len(SIZES))
        line = fit_line(list(SIZES), [float(f * (1e-4 + 1e-8 * size)) for f, size in zip(noise, SIZES, strict=True)])
        for i, (interval, true) in enumerate([(line.start_interval, 1e-4), (line.per_byte_interval, 1e-8)]):
            covered[i] += interval[0] <= true <= interval[1]
    assert (covered / 300 > 0.9).all() and (covered / 300 < 0.99).all()


def test_a_negative_start_is_clipped_and_said():
    seconds = [max(1e-9, 1e-8 * size - 1e-6) for size in SIZES]
    line = fit_line(list(SIZES), seconds)
    assert line.clipped and line.start == 0 and line.per_byte > 0 and line.start_interval == (0, 0)


def test_no_line_falls():
    line = fit_line([1024, 4096, 16384], [3e-6, 2e-6, 1e-6])
    assert line.per_byte == 0 and line.start > 0


def test_sizes_stay_within_the_machines_memory():
    """Each of 16 processes would hold 16 times 64 MB."""
    world = WorldConfig(workers=16, processes=16, transport="torch")
    assert sizes_that_fit(world, SIZES[-1]) == [size for size in SIZES if size <= 4 * 2**20]
    world = WorldConfig(workers=4, processes=4, transport="torch")
    assert sizes_that_fit(world, SIZES[-1]) == list(SIZES) and sizes_that_fit(world, 70_000)[-1] == 65_536


@pytest.mark.slow
def test_ranks_are_timed_and_written(suite_command, tmp_path):
    out = tmp_path / "network.yaml"
    options = ("--workers", 2, "--transport", "torch", "--largest", 65536, "--out", out)
    result = suite_command("measure", "network", *options)
    assert result.returncode == 0, result.stderr
    assert "95% intervals" in result.stdout
    costs = NetworkCosts.model_validate(yaml.safe_load(out.read_text()))
    assert costs.workers == 2 and costs.all_gather.seconds(1024) > 0
    assert "torch, 2 workers on 2 processes" in costs.source


def test_a_world_that_cannot_be(suite_command):
    result = suite_command("measure", "network", "--workers", 4, "--processes", 3)
    assert result.returncode == 2 and "3 does not divide 4" in result.stderr

"""Data named on Snakemake's command line: refused before anything runs when they are not there, else given to jobs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from helpers import copy_pipeline

pytestmark = [pytest.mark.slow, pytest.mark.pipeline]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """A copy of what the pipeline needs, with nothing done in it."""
    return copy_pipeline(tmp_path_factory.mktemp("checkout"), "results/reference")


def snakemake(checkout: Path, *arguments: str, **config: str | Path) -> subprocess.CompletedProcess:
    settings = [f"{key}={value}" for key, value in config.items()]
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments, "--config", *settings]
    if (wanted := [a for a in arguments if a.startswith("results/")]) != []:
        command = [a for a in command if a not in wanted] + ["--", *wanted]
    env = {key: value for key, value in os.environ.items() if key != "SUITE_DATA"}
    env["SUITE_CACHE"] = str(checkout / "cache")
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=300, env=env)


def test_a_folder_that_is_not_there(fresh, tmp_path):
    result = snakemake(fresh, "-n", profile="smoke", data_root=tmp_path / "nowhere")
    assert (
        result.returncode != 0 and f"there is no folder of data {tmp_path / 'nowhere'}" in result.stdout + result.stderr
    )


def test_data_a_profile_needs_and_nobody_named(fresh):
    result = snakemake(fresh, "-n", profile="cifar-cpu")
    assert result.returncode != 0 and "Penn Treebank is not ours to download" in result.stdout + result.stderr


def test_a_folder_without_the_data_a_profile_needs(fresh, tmp_path):
    result = snakemake(fresh, "-n", profile="cifar-cpu", data_root=tmp_path)
    assert result.returncode != 0 and f"{tmp_path} holds no CIFAR-10" in result.stdout + result.stderr


def test_jobs_read_the_named_folder(fresh, tmp_path):
    """They find it incomplete, which only they can know."""
    for part in ("train", "test"):
        (tmp_path / part / "ship").mkdir(parents=True)
        Image.new("RGB", (32, 32)).save(tmp_path / part / "ship" / "0.png")
    for part in ("train", "valid", "test"):
        (tmp_path / f"ptb.{part}.txt").write_text("a b\n")
    cell = "results/cifar-cpu/runs/resnet20/dense/0"
    result = snakemake(fresh, f"{cell}/summary.json", profile="cifar-cpu", data_root=tmp_path)
    assert result.returncode != 0, result.stdout + result.stderr
    log = (fresh / "results/cifar-cpu/logs/train/resnet20-dense-0.log").read_text()
    assert f"suite: {tmp_path} holds 1 train images and CIFAR-10 has 50,000" in log

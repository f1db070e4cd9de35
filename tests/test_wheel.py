"""The built wheel works from outside of the repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from helpers import ROOT, tiny_settings
from training import summary_of


@pytest.mark.slow
def test_the_wheel_trains_outside_of_the_checkout(tmp_path):
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "-q", "--local", str(ROOT), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", str(source), "-w", str(tmp_path / "dist")]
    subprocess.run(build, check=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"suite"}
    assert any(name.endswith(".j2") for name in zipfile.ZipFile(wheel).namelist())
    target = tmp_path / "installed"
    subprocess.run(
        [*pip, "install", "-q", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True, timeout=120
    )
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(tiny_settings() | {"train": {"max_iterations": 4, "batch_size": 2}})
    )
    env = os.environ | {"PYTHONPATH": str(target)}
    where = subprocess.run(
        [sys.executable, "-c", "import suite; print(suite.__file__)"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(target)
    command = [sys.executable, "-m", "suite", "train", "config.yaml", "--out", "run"]
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert summary_of(tmp_path / "run")["iterations"] == 4

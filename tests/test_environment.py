"""The environment files agree with each other and with what is installed, and set-up survives a missing compiler."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from helpers import require

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())


def asked_for() -> dict[str, Requirement]:
    lines = (line.strip() for line in (ROOT / "requirements.in").read_text().splitlines())
    return {canonicalize_name(r.name): r for r in (Requirement(x) for x in lines if x and not x.startswith("#"))}


def pins() -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+) \\$", LOCK, re.MULTILINE))


@pytest.fixture
def setup(monkeypatch, tmp_path):
    """cluster/setup.py as a module that works on a folder of its own."""
    spec = importlib.util.spec_from_file_location("cluster_setup", ROOT / "cluster" / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.VENV = tmp_path / "venv"
    module.VENV.mkdir()
    monkeypatch.setenv("SUITE_CACHE", str(tmp_path / "cache"))
    for name in ("SUITE_WITHOUT_HOROVOD", "HOROVOD_GPU_OPERATIONS", "CXX"):
        monkeypatch.delenv(name, raising=False)
    return module


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """A PATH on which only the given programs stand in front of the system's basic ones."""
    folder = tmp_path / "tools"
    folder.mkdir()

    def provide(**scripts: str) -> None:
        for name, body in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{body}\n")
            (folder / name).chmod(0o755)

    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return provide


def test_conda_installs_exactly_the_lock():
    nested = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    assert nested == [["-r requirements.lock"]]


def test_conda_python_is_the_projects():
    versions = [e.split("=")[1] for e in ENVIRONMENT["dependencies"] if isinstance(e, str) and e.startswith("python=")]
    assert len(versions) == 1
    assert SpecifierSet(PROJECT["requires-python"]).contains(f"{versions[0]}.7")
    assert sys.version_info[:2] == tuple(map(int, versions[0].split(".")))


def test_lock_pins_everything_asked_for():
    locked = pins()
    assert {name for name in asked_for() if name not in locked} == set()
    wrong = {name: locked[name] for name, r in asked_for().items() if not r.specifier.contains(locked[name])}
    assert wrong == {}


def test_every_pin_has_hashes():
    packages = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(packages) == len(pins())
    assert [package.split()[0] for package in packages if "--hash=sha256:" not in package] == []


def test_lock_names_no_place():
    code = [line.split("#")[0] for line in LOCK.splitlines()]
    assert [line for line in code if re.search(r"://|@|--(extra-)?index-url|--find-links|(^|\s)\.{0,2}/", line)] == []


def test_project_dependencies_are_resolved_ones():
    assert {canonicalize_name(Requirement(d).name) for d in PROJECT["dependencies"]} - set(asked_for()) == set()


@pytest.mark.parametrize("name", ["torch", "torchvision", "snakemake", "mlflow"])
def test_installed_version_is_the_pin(name):
    assert metadata.version(name).split("+")[0] == pins()[name]


@pytest.mark.horovod
def test_installed_horovod_is_the_recipes(setup):
    present = importlib.util.find_spec("horovod") is not None
    require("horovod", present, "Horovod is not installed: see .venv/horovod-missing.txt")
    assert metadata.version("horovod") == setup.pinned("horovod", setup.RECIPE / "requirements.txt")


def test_help_lists_the_targets_there_are():
    shown = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^make ([\w-]+)", shown, re.MULTILINE))
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert listed == set(targets)
    for target in targets:
        subprocess.run(["make", "-C", str(ROOT), "--dry-run", target], capture_output=True, check=True)


def test_cache_key_tells_wheels_apart(setup):
    usual = {"torch": "2.14.1", "controllers": "gloo-mpi", "gpu": "", "recipe": "a" * 64}
    other = {"torch": "2.13.0", "controllers": "gloo", "gpu": "NCCL", "recipe": "b" * 64}
    keys = {setup.wheel_key(**usual), *(setup.wheel_key(**{**usual, name: value}) for name, value in other.items())}
    assert len(keys) == 1 + len(other)
    assert all("/" not in key and " " not in key for key in keys)


def test_a_changed_recipe_changes_its_digest(setup, monkeypatch, tmp_path):
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    (tmp_path / "recipe").mkdir()
    file = tmp_path / "recipe" / "toolchain.cmake"
    file.write_text("one")
    before = setup.digest(tmp_path / "recipe")
    file.write_text("two")
    assert setup.digest(tmp_path / "recipe") != before


def test_horovod_is_due_again_only_when_more_is_offered(setup, tools, monkeypatch):
    mark = setup.VENV / "horovod"
    monkeypatch.setenv("SUITE_WITHOUT_HOROVOD", "1")
    assert not setup.horovod_is_settled(mark)
    setup.horovod(setup.Step(3, "Horovod"), mark)
    assert setup.horovod_is_settled(mark)
    monkeypatch.delenv("SUITE_WITHOUT_HOROVOD")
    assert not setup.horovod_is_settled(mark)

    monkeypatch.setenv("CXX", "no-such-compiler")
    setup.horovod(setup.Step(3, "Horovod"), mark)
    assert setup.horovod_is_settled(mark)
    tools(**{"a-new-compiler": "exit 1"})
    monkeypatch.setenv("CXX", "a-new-compiler")
    assert not setup.horovod_is_settled(mark)
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "NCCL")
    assert not setup.horovod_is_settled(mark)


@pytest.mark.parametrize(
    "compiler, said",
    [
        ("echo 'cc1plus: error: unrecognized option -std=c++20' >&2; exit 1", "cannot compile C++20"),
        (None, "no-such-compiler was not found"),
    ],
    ids=["fails", "missing"],
)
def test_setup_goes_on_without_a_compiler(setup, tools, monkeypatch, capsys, compiler, said):
    if compiler:
        tools(**{"g++": compiler})
    else:
        monkeypatch.setenv("CXX", "no-such-compiler")
    setup.horovod(setup.Step(3, "Horovod"), setup.VENV / "horovod")
    note = (setup.VENV / "horovod-missing.txt").read_text()
    assert note.count("\n") == 1 and "Horovod runs are skipped" in note
    assert said in note and "setup-horovod.log" in note
    assert note in capsys.readouterr().out


def test_setup_leaves_horovod_out_on_request(setup, tools, monkeypatch):
    tools(**{"g++": "exit 1"})
    monkeypatch.setenv("SUITE_WITHOUT_HOROVOD", "1")
    setup.horovod(setup.Step(3, "Horovod"), setup.VENV / "horovod")
    assert "SUITE_WITHOUT_HOROVOD" in (setup.VENV / "horovod-missing.txt").read_text()
    assert not (setup.VENV / "setup-horovod.log").exists()


def test_failed_build_is_explained_by_its_first_error(setup, tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "[ 10%] Building CXX object common.cc.o\n"
        "torch/all.h:4:2: error: C++20 or later compatible compiler is required\n"
        "make: *** [all] Error 2\n"
        "error: subprocess-exited-with-error\n"
        "ERROR: Failed to build one or more wheels\n"
    )
    assert setup.reason(log) == "torch/all.h:4:2: error: C++20 or later compatible compiler is required"
    log.write_text("CMake Error at CMakeLists.txt:3 (find_package):\n  MPI was not found\nERROR: Failed to build\n")
    assert setup.reason(log) == "CMake Error at CMakeLists.txt:3 (find_package): MPI was not found"
    log.write_text("Collecting horovod\nERROR: No matching distribution found for horovod==0.28.1\n\n")
    assert setup.reason(log) == "ERROR: No matching distribution found for horovod==0.28.1"


def test_setup_never_replaces_a_venv_it_did_not_make(setup):
    (setup.VENV / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with pytest.raises(setup.Failed, match="did not make"):
        setup.fresh_venv(sys.executable, setup.VENV / "packages")
    assert (setup.VENV / "pyvenv.cfg").exists()


def test_setup_names_the_python_it_needs(setup, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", (3, 13, 0, "final", 0))
        assert setup.main() == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "3.11" in said and "3.13" in said and "PYTHON=" in said

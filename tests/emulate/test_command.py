"""What `suite emulate` refuses, without starting anything."""

import pytest
from typer.testing import CliRunner

from helpers import ROOT
from suite.cli.app import app
from suite.errors import ConfigError


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["emulate", *arguments])
    assert isinstance(result.exception, ConfigError), result.output
    return str(result.exception)


def test_something_has_to_be_named():
    assert "name what to emulate" in refusal()
    assert "name what to emulate" in refusal("VGG-16", "--profile", "laptop")
    assert "lists nothing for profile 'smoke'" in refusal("--profile", "smoke")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("VGG-16", "--method", "lag"), "'dense', 'slgs' or 'lags'"),
        (("VGG-16", "--workers", "1"), "one host alone exchanges nothing"),
        (("VGG-17",), "did you mean 'VGG-16'?"),
        (("VGG-16", "--set", "method.densty=0.1"), "did you mean 'density'?"),
    ],
)
def test_bad_input(arguments, said):
    assert said in refusal(*arguments, "--dry-run")


def test_without_tools_prediction_is_what_remains(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refusal("VGG-16", "--out", str(tmp_path / "out"))
    assert said.startswith("no network can be emulated here: there is no ip in PATH")
    assert "`suite predict` needs none" in said and not (tmp_path / "out").exists()


def test_hosts_that_do_not_fit_the_memory_are_refused(tmp_path):
    said = refusal("LSTM-PTB", "--workers", "2000", "--out", str(tmp_path / "out"))
    assert "of memory" in said and "emulate fewer" in said


def test_a_dry_run_lists_the_cells():
    result = CliRunner().invoke(app, ["emulate", "VGG-16", "--network", "10gbe", "--workers", "8", "-n"])
    lines = result.stdout.splitlines()
    assert len(lines) == 3 and all(line.startswith("would emulate: VGG-16") for line in lines)

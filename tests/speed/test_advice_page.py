"""The commands of docs/advice.md work as they stand there."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from helpers import ROOT
from suite.cli.app import app

PAGE = (ROOT / "docs" / "advice.md").read_text()
COMMANDS = re.findall(r"^suite (advise .*)$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def own_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (code,) = re.findall(r"```python\n# my_training.py\n(.*?)```", PAGE, re.DOTALL)
    (folder / "my_training.py").write_text(code)
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command.split()[1:3]) for command in COMMANDS])
def test_a_command(command: str, own_folder, monkeypatch):
    monkeypatch.chdir(own_folder if "my_training" in command or "layers.yaml" in command else ROOT)
    result = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert result.exit_code == 0 and re.search(
        r"(?m)^(Dense is best here|(LAGS|SLGS) is [\d.]+ times as fast)", result.stdout
    )
    if "--figure" in command:
        assert (own_folder / "advice.svg").stat().st_size > 1000 and (own_folder / "layers.yaml").exists()


def test_the_page_has_four():
    assert len(COMMANDS) == 4

"""Wrong inputs through the real command line: one sentence, the right exit code; more are in tests/faults."""

from pathlib import Path

import pytest
import typer
import yaml

from helpers import ROOT, tiny_settings
from suite.cli.app import app
from suite.config import ExperimentConfig
from suite.methods import METHODS


def refusal(result, code: int, *words: str) -> None:
    """Exit code, one line on standard error, no traceback, and the words in it."""
    assert result.returncode == code, result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("suite: ")]
    for word in words:
        assert word in line, line


def test_misspelt_key(suite_command, config_file, tmp_path):
    config = config_file(method={"name": "lags", "densty": 0.1})
    refusal(
        suite_command("train", config, "--out", tmp_path / "run"), 2, "unknown key 'densty'", "did you mean 'density'"
    )
    assert not (tmp_path / "run").exists()


def test_three_processes_for_sixteen_workers(suite_command, config_file, tmp_path):
    config = config_file(world={"workers": 16, "processes": 3, "transport": "torch"})
    refusal(suite_command("train", config, "--out", tmp_path / "run"), 2, "3 does not divide 16", "1, 2, 4, 8, 16")
    assert not (tmp_path / "run").exists()


def test_fewer_samples_than_workers(suite_command, config_file, tmp_path):
    settings = tiny_settings()["data"] | {"max_train_tokens": 20}
    result = suite_command("train", config_file(data=settings), "--out", tmp_path / "run")
    refusal(result, 2, "20 training tokens cannot give 4 workers a batch of 2 each", "world.workers")
    assert not (tmp_path / "run").exists()


def test_missing_configuration(suite_command):
    refusal(suite_command("train", "nowhere.yaml"), 2, "there is no configuration 'nowhere.yaml'")


def test_an_address_outside_of_a_checkout(suite_command):
    refusal(suite_command("train", "laptop/digits/lags/0"), 2, "run from the root of the suite's checkout")


def test_a_pattern_that_names_no_layer(suite_command, config_file, tmp_path):
    config = config_file(method={"name": "lags", "layer_density": {"decodr.*": 0.5}})
    refusal(
        suite_command("train", config, "--out", tmp_path / "run"), 2, "'decodr.*' matches no layer", "decoder.weight"
    )
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_a_file(suite_command, config_file, tmp_path):
    (tmp_path / "run").write_text("mine")
    refusal(suite_command("train", config_file(), "--out", tmp_path / "run"), 2, "cannot be written", "--out")
    assert (tmp_path / "run").read_text() == "mine"


def test_other_number_of_workers_on_resume(suite_command, config_file, tmp_path):
    config = config_file(train={"epochs": 1, "batch_size": 2, "max_iterations": 3})
    assert suite_command("train", config, "--out", tmp_path / "run").returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    result = suite_command("train", config, "--out", tmp_path / "run", "--set", "world.workers=2")
    refusal(result, 2, "world.workers = 4 and this one has 2", "--restart-if-changed")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_claims_without_tables(suite_command, tmp_path):
    (tmp_path / "laptop" / "runs").mkdir(parents=True)
    result = suite_command("claims", "laptop", "--results", tmp_path, cwd=ROOT)
    refusal(result, 1, "runs.csv is missing or damaged; run `suite aggregate laptop`")


@pytest.mark.parametrize(
    "command", ["states", "aggregate", "track", "claims", "report", "keep", "drift", "so-far", "times"]
)
def test_a_misspelt_profile(suite_command, tmp_path, command: str):
    result = suite_command(command, "laptp", "--results", tmp_path, cwd=ROOT)
    refusal(result, 2, "unknown profile 'laptp'; did you mean 'laptop'?")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["track", "claims", "report", "keep", "drift"])
def test_a_profile_that_was_never_run(suite_command, tmp_path, command: str):
    result = suite_command(command, "gtopk", "--results", tmp_path, cwd=ROOT)
    refusal(result, 2, "there are no runs in", "make replicate PROFILE=gtopk")
    assert not list(tmp_path.iterdir())


def test_results_that_cannot_be_written(suite_command, tmp_path):
    (tmp_path / "laptop").write_text("mine")
    result = suite_command("states", "laptop", "--results", tmp_path, cwd=ROOT)
    refusal(result, 2, "cannot be used")


@pytest.mark.parametrize("override, words", [
    ("model.name=resnet2", "model.name: there is no 'resnet2'; did you mean 'resnet20'?"),
    ("data.name=cifar", "data.name: there is no 'cifar'; did you mean 'cifar10'?"),
])  # fmt: skip
def test_a_misspelt_model_or_dataset(suite_command, config_file, override: str, words: str):
    refusal(suite_command("train", config_file(), "--set", override), 2, words)


def test_a_dry_run_looks_at_the_folder(suite_command, config_file, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for out in (tmp_path / "mine", tmp_path / "mine" / "run"):
        result = suite_command("train", config_file(), "--out", out, "--dry-run")
        refusal(result, 2, "cannot be written", "--out")


def test_settings_are_listed(suite_command):
    found = dict(line.split(maxsplit=1) for line in suite_command("list", "settings").stdout.splitlines())
    assert found["optimizer.lr"] == "0.1" and found["world.workers"].startswith("16: P")
    assert found["method.masking"].endswith("[dgc]") and found["method.adaptive.c_u"].startswith("1000: ")
    assert found["costs"].startswith("none by default") and found["costs.layers.layers"].startswith("required")
    lists = {key.split(".")[0] for key in found}
    assert lists == set(ExperimentConfig.model_fields)


def test_profiles_are_listed(suite_command):
    found = suite_command("list", "profiles", cwd=ROOT).stdout.splitlines()
    assert {"laptop", "paper", "field"} <= {line.split()[0] for line in found}


def test_debug_shows_the_traceback(suite_command):
    result = suite_command("--debug", "train", "nowhere.yaml")
    assert result.returncode == 2 and "Traceback" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["list", "--help"], ["plan", "--help"], ["claims", "--help"]]
)
def test_help_teaches(suite_command, arguments: list[str]):
    result = suite_command(*arguments)
    assert result.returncode == 0 and "Usage" in result.stdout


def test_every_help_has_an_example():
    def commands(group, path=()):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from commands(command, (*path, name))
            elif not command.hidden:
                yield (*path, name), command

    found = dict(commands(typer.main.get_command(app)))
    assert len(found) > 20
    for path, command in found.items():
        assert f"`suite {' '.join(path)}" in command.help and "Example" in command.help, path


def test_dry_run_writes_nothing(suite_command, config_file, tmp_path):
    result = suite_command("train", config_file(), "--out", tmp_path / "run", "--dry-run")
    assert result.returncode == 0 and "would train lags on pydoc with 4 workers on 1 process" in result.stdout
    assert not (tmp_path / "run").exists()


def test_plan_prints_what_is_sent(suite_command, config_file):
    result = suite_command("plan", config_file())
    assert result.returncode == 0 and "decoder.weight" in result.stdout and "MB on the wire" in result.stdout


def test_lists(suite_command):
    assert "LSTM" in suite_command("list", "models").stdout or "lstm" in suite_command("list", "models").stdout
    result = suite_command("list", "methods")
    assert [line.split()[0] for line in result.stdout.splitlines()] == sorted(METHODS)
    listed = {line.split()[0] for line in suite_command("list", "claims", cwd=ROOT).stdout.splitlines()}
    assert listed == {path.parent.name for path in ROOT.glob("replications/*/claims.yaml")}


def test_doctor_approves_of_this_machine(suite_command):
    result = suite_command("doctor", cwd=ROOT)
    assert result.returncode == 0 and "embedded data" in result.stdout


def test_a_resolved_configuration_can_be_run_again(suite_command, config_file, tmp_path):
    config = config_file(train={"epochs": 1, "batch_size": 2, "max_iterations": 3})
    assert suite_command("train", config, "--out", tmp_path / "one").returncode == 0
    assert suite_command("train", tmp_path / "one" / "config.yaml", "--out", tmp_path / "two").returncode == 0
    first, second = (yaml.safe_load((tmp_path / name / "config.yaml").read_text()) for name in ("one", "two"))
    assert first == second and Path(tmp_path / "two" / "summary.json").exists()

"""Runs that something happens to, and the table of what came of it."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import yaml
from fault_runs import LENGTH, VIRTUAL, Attempt, settings
from fault_table import Row, write_row

from suite.config import validate_config
from suite.record.states import CellState
from training import summary_of, trainer


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--write-faults", action="store_true", help="Bring docs/faults.md up to date with what the tests see."
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    row = getattr(item, "funcargs", {}).get("row")
    if (
        row is not None
        and report.when == "call"
        and report.passed
        and item.config.getoption("--write-faults", default=False)
    ):
        write_row(row)
    return report


@pytest.fixture
def row(request) -> Row:
    """This test's row; it is kept when the test passes, which asks for all its cells."""
    return Row(*request.function.fault)


@pytest.fixture
def attempt(tmp_path) -> Iterator[Callable[..., Attempt]]:
    """Prepare a run with other sections of settings; what still lives at the end is killed."""
    made: list[Attempt] = []

    def prepare(name: str = "run", **sections) -> Attempt:
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings(**sections)))
        made.append(Attempt(path, tmp_path / name))
        return made[-1]

    yield prepare
    for one in made:
        if hasattr(one, "process") and one.process.poll() is None:
            one.process.send_signal(signal.SIGKILL)
            one.process.communicate(timeout=30)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory) -> dict:
    """The summary of the run that nothing happens to."""
    torch.set_num_threads(1)  # before the fixture that does so for every test
    folder = tmp_path_factory.mktemp("undisturbed")
    trainer(validate_config(settings(world=VIRTUAL)), folder).run()
    return summary_of(folder)


@pytest.fixture
def loses_nothing(undisturbed) -> Callable[[Path], str]:
    """Finish a run in this process, as another placement of it, and compare its bits; what was lost, in words."""

    def finish(folder: Path) -> str:
        stored = yaml.safe_load((folder / "config.yaml").read_text())
        stored["train"]["max_iterations"] = LENGTH  # of a run that was given more time for something to happen
        (folder / "config.yaml").write_text(yaml.safe_dump(stored))
        run = trainer(validate_config(settings(world=VIRTUAL)), folder)
        run.run()
        summary = summary_of(folder)
        assert summary["parameters_sha256"] == undisturbed["parameters_sha256"]
        assert not (folder / "failure.json").exists()
        return (
            f"nothing (continued from iteration {run.resumed_at[-1]})" if run.resumed_at else "nothing (from the start)"
        )

    return finish


@pytest.fixture
def state_of(tmp_path, monkeypatch) -> Callable[[Path], CellState]:
    """The state the suite's tables give a run folder."""

    def look(folder: Path) -> CellState:
        from suite.config.profiles import Cell
        from suite.record import states

        target = tmp_path / "profile" / "runs" / "x" / "lags"
        target.mkdir(parents=True, exist_ok=True)
        (target / "0").unlink(missing_ok=True)
        (target / "0").symlink_to(folder)
        monkeypatch.setattr(states, "profile_cells", lambda _: [Cell("profile", "x", "lags", 0, "X", {})])
        return states.cell_states(tmp_path / "profile")[0]

    return look

"""The grid of experiments: addresses, inheritance, and that everything we ship is valid."""

from pathlib import Path

import pytest
import yaml

from suite.claims import read_claims
from suite.claims.model import TimeCheck
from suite.config import validate_config
from suite.config.profiles import find_cell, profile_cells
from suite.errors import ConfigError
from suite.speed.networks import read_networks
from suite.speed.published import published_models
from suite.train.trace import TRACED_ITERATION

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("profile", ["smoke", "laptop"])
def test_shipped_cells_are_valid(at_root, profile: str):
    cells = profile_cells(profile)
    assert len({cell.address for cell in cells}) == len(cells)
    for cell in cells:
        assert validate_config(cell.config).train.seed == cell.seed


def test_the_laptop_profile_is_the_main_job(at_root):
    cells = profile_cells("laptop")
    grid = {(cell.experiment, cell.method, cell.seed) for cell in cells}
    assert {(e, m, s) for e in ("digits", "pydoc") for m in ("dense", "slgs", "lags") for s in (0, 1, 2)} <= grid
    ranks = [cell for cell in cells if cell.experiment == "ranks"]
    once = {("dense", 0), ("slgs", 0)}
    assert {(cell.method, cell.seed) for cell in ranks} == once | {("lags", seed) for seed in (0, 1, 2)}
    for cell in ranks:
        assert cell.config["world"] == {"transport": "horovod", "workers": 4, "processes": 4}
        assert cell.config["train"]["max_iterations"] > TRACED_ITERATION


def test_claims_name_models_and_networks_that_exist(at_root):
    claims = read_claims(ROOT / "replications" / "lags2019")
    assert {c.id for c in claims} == {f"S{i}" for i in range(1, 10)} | {f"RQ{i}" for i in range(1, 6)} | {"A1", "A2"}
    for claim in claims:
        assert claim.checks if "laptop" in claim.judged_by else claim.not_judged
        for check in claim.checks:
            if isinstance(check, TimeCheck):
                assert set(check.models) <= set(published_models()) and check.network in read_networks()


@pytest.mark.parametrize(
    "address, message",
    [("laptp/digits/lags/0", "unknown profile 'laptp'; did you mean 'laptop'?"),
     ("laptop/digits/lagz/0", "no cell 'laptop/digits/lagz/0'; did you mean 'laptop/digits/lags/0'?")],
)  # fmt: skip
def test_unknown_addresses(at_root, address: str, message: str):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        find_cell(address)


def test_outside_a_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="run from the root of the suite's checkout"):
        profile_cells("laptop")


def test_like_inherits_and_overrides(tmp_path, monkeypatch):
    folder = tmp_path / "replications" / "x"
    folder.mkdir(parents=True)
    (folder / "experiments.yaml").write_text(yaml.safe_dump({"profiles": {"p": {
        "a": {"title": "A", "base": {"train": {"epochs": 3}, "world": {"workers": 4}},
              "methods": {"d": {"method": "dense"}}, "seeds": [0, 1]},
        "b": {"title": "B", "like": "a", "base": {"train": {"epochs": 1}}, "seeds": [5]},
    }}}))  # fmt: skip
    monkeypatch.chdir(tmp_path)
    cell = find_cell("p/b/d/5")
    assert cell.config == {"train": {"epochs": 1, "seed": 5}, "world": {"workers": 4}, "method": "dense"}
    assert find_cell("p/a/d/0").config_hash != find_cell("p/a/d/1").config_hash


def test_seeds_by_method(tmp_path, monkeypatch):
    folder = tmp_path / "replications" / "x"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    def cells(seeds: dict) -> list[str]:
        methods = {"a": {"method": "dense"}, "b": {"method": "lags"}}
        spec = {"profiles": {"p": {"e": {"title": "E", "methods": methods, "seeds": seeds}}}}
        (folder / "experiments.yaml").write_text(yaml.safe_dump(spec))
        return [cell.folder for cell in profile_cells("p")]

    assert cells({"a": [0], "b": [0, 1]}) == ["e/a/0", "e/b/0", "e/b/1"]
    for wrong in ({"a": [0]}, {"a": [0], "b": []}, {"a": [0], "b": [0], "c": [0]}):
        with pytest.raises(ConfigError, match="one seed for each and no other"):
            cells(wrong)

"""Every folder of replications/: its profiles can be run, and its claims are about what they train."""

import re
from pathlib import Path

import pytest
import yaml

from helpers import ROOT
from suite.claims import claims_of, read_claims
from suite.claims.model import PredictedCheck, RunCheck
from suite.claims.times import values_predicted
from suite.config import validate_config
from suite.config.profiles import profile_cells, read_experiments
from suite.errors import ConfigError

FOLDERS = sorted(path.parent for path in (ROOT / "replications").glob("*/experiments.yaml"))
PROFILES = {name: folder for folder in FOLDERS for name in read_experiments(folder / "experiments.yaml").profiles}
RELATED = {
    "wangni2018": range(21, 24), "memsgd2018": range(24, 30), "alistarh2018": range(30, 32), "gtopk2019": range(32, 38),
    "hieravg2019": range(38, 41), "adaalter2019": range(41, 44), "rtopk2020": range(44, 46),
    "localsgda2021": range(46, 49), "acpsgd2023": range(49, 54), "adaptivebatch2024": range(54, 56),
    "field": range(56, 63),
}  # fmt: skip


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("profile", PROFILES)
def test_cells_of_every_profile_are_valid(profile: str):
    cells = profile_cells(profile)
    assert len({cell.address for cell in cells}) == len(cells) > 0
    for cell in cells:
        assert validate_config(cell.config).train.seed == cell.seed


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_folder_says_what_it_is(folder: Path):
    text = (folder / "README.md").read_text()
    assert text.startswith("# ")
    for name in re.findall(r"make replicate PROFILE=([\w-]+)", text):
        assert PROFILES[name] == folder


@pytest.mark.parametrize("name", RELATED)
def test_the_claims_of_the_related_systems_are_all_there(name: str):
    claims = read_claims(ROOT / "replications" / name)
    assert [claim.id for claim in claims] == [f"C{number}" for number in RELATED[name]]
    for claim in claims:
        # Where it is from, and how sure we are of that.
        assert re.match(r"(seen|recalled|derived|a summary)", claim.source), claim.id
        assert bool(claim.judged_by) == bool(claim.checks) != bool(claim.not_judged), claim.id
        for test in re.findall(r"tests/[\w/]+\.py", claim.not_judged + "".join(claim.scope.values())):
            assert (ROOT / test).exists(), test
        for profile in claim.judged_by:
            assert PROFILES[profile].name == name and claim.scope[profile], claim.id
            assert claim in claims_of(profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_checks_name_cells_that_are_trained(profile: str):
    """With the three seeds that a verdict takes, where a check of a related system decides."""
    seeds: dict[tuple[str, str], int] = {}
    for cell in profile_cells(profile):
        key = (cell.experiment, cell.method.rpartition("-")[0] if cell.experiment == "rate" else cell.method)
        seeds[key] = seeds.get(key, 0) + 1
    for claim in claims_of(profile):
        if profile not in claim.judged_by:
            continue
        assert profile != "cifar-cpu" or claim.scope.get(profile), f"{claim.id} does not say what was cut"
        for check in claim.checks_for(profile):
            if isinstance(check, RunCheck):
                counts = [seeds[check.experiment, method] for method in (check.method, check.against) if method]
                assert min(counts) >= 3 or check.beside or PROFILES[profile].name == "lags2019", (claim.id, check.name)


@pytest.mark.parametrize("name", RELATED)
def test_predictions_of_claims_can_be_made(name: str):
    for claim in read_claims(ROOT / "replications" / name):
        for check in claim.checks:
            if isinstance(check, PredictedCheck):
                assert values_predicted(check).values.item() > 0


def test_claims_are_of_the_profiles_own_replication():
    """A profile is not judged by, nor its report filled with, what others claim."""
    assert {claim.id for claim in claims_of("gtopk")} == {f"C{number}" for number in RELATED["gtopk2019"]}
    assert {claim.id for claim in claims_of("smoke")} == {
        claim.id for claim in read_claims(ROOT / "replications/lags2019")
    }


def test_a_profile_belongs_to_one_replication(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = {"profiles": {"p": {"e": {"title": "E", "methods": {"a": {"method": "dense"}}, "seeds": [0]}}}}
    for name in ("x", "y"):
        (tmp_path / "replications" / name).mkdir(parents=True)
        (tmp_path / "replications" / name / "experiments.yaml").write_text(yaml.safe_dump(spec))
    with pytest.raises(ConfigError, match="profile 'p' is in replications/x and replications/y"):
        profile_cells("p")
    assert read_claims(tmp_path / "replications" / "x") == ()

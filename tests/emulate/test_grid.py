"""Which cells are emulated, and what is refused before anything starts."""

import pytest
import yaml
from pydantic import ValidationError

from helpers import ROOT
from suite.emulate.grid import EmulationSpec, emulations, expand
from suite.emulate.record import is_done
from suite.errors import ConfigError


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def spec(**values) -> EmulationSpec:
    return EmulationSpec.model_validate({"models": ["VGG-16"], "networks": ["1gbe"]} | values)


def test_everything_is_crossed():
    cells = expand(spec(models=["VGG-16", "LSTM-PTB"], networks=["1gbe", "2.5"], workers=[2, 4]))
    assert len(cells) == len({cell.folder for cell in cells}) == len({cell.hash for cell in cells}) == 2 * 2 * 3 * 2
    assert {cell.bandwidth for cell in cells} == {1e9, 2.5e9}
    density = {cell.model: cell.method["density"] for cell in cells if cell.method["name"] != "dense"}
    assert density == {"VGG-16": 0.001, "LSTM-PTB": 0.004}


def test_a_selection_of_its_own_has_a_folder_of_its_own():
    (published,), (ours,) = expand(spec(methods=["lags"])), expand(spec(methods=["lags"], selection="ours", copies=2))
    assert (published.selection, ours.selection) == ("published", "ours")
    assert published.folder == "1gbe/16/vgg-16/lags" and ours.folder == "1gbe/16/vgg-16/lags-ours"
    # Two copies read and write 8 bytes an element twice, at the device's 440 GB/s.
    size = sum(layer.size for layer in ours.layers.layers)
    assert ours.layers.select == pytest.approx(2 * 8 * size / 440e9) and ours.layers.select < published.layers.select


def test_overrides_reach_the_sparse_methods():
    cells = expand(spec(), ["method.density=0.01"])
    assert [cell.method.get("density") for cell in cells] == [None, 0.01, 0.01]


@pytest.mark.parametrize("profile, least", [("laptop", 3), ("reference", 24), ("smoke", 0)])
def test_profiles(profile, least):
    cells = emulations(profile)
    assert len(cells) >= least and bool(cells) == bool(least)
    assert len({cell.folder for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    "values, said",
    [
        ({"networks": ["1gb"]}, "there is no network '1gb'; did you mean '1gbe'?, or give Gb/s"),
        ({"networks": ["-1"]}, "a network of -1 Gb/s carries nothing"),
        ({"models": ["ResNet50"]}, "did you mean 'ResNet-50'?"),
    ],
)
def test_what_is_not_there_is_refused(values, said):
    with pytest.raises(ConfigError) as refused:
        expand(spec(**values))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "values", [{"workers": [1]}, {"selection": "ours"}, {"methods": ["lag"]}, {"network": ["1gbe"]}]
)
def test_a_specification_has_to_make_sense(values):
    with pytest.raises(ValidationError):
        spec(**values)


def test_the_file_is_refused_by_name(monkeypatch, tmp_path):
    folder = tmp_path / "replications" / "x"
    folder.mkdir(parents=True)
    (folder / "experiments.yaml").write_text("profiles: {}")
    (folder / "emulations.yaml").write_text(
        yaml.safe_dump({"profiles": {"laptop": [{"models": ["a"], "stretchh": 2}]}})
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="emulations.yaml: .*stretch"):
        emulations("laptop")


def test_only_a_complete_record_of_the_same_settings_is_done(tmp_path):
    (cell,) = expand(spec(methods=["lags"]))
    folder = tmp_path / cell.folder
    folder.mkdir(parents=True)
    assert not is_done(tmp_path, cell)
    (folder / "summary.json").write_text(f'{{"complete": true, "hash": "{cell.hash}"}}')
    assert is_done(tmp_path, cell) and not is_done(tmp_path, cell.model_copy(update={"iterations": 9}))
    (folder / "summary.json").write_text(f'{{"hash": "{cell.hash}"}}')
    assert not is_done(tmp_path, cell)

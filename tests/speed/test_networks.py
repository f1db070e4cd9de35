"""Networks are found by name, file or bandwidth, and refused with what to do instead."""

import pytest
import yaml

from helpers import ROOT
from suite.config.costs import LinkCosts
from suite.errors import ConfigError
from suite.speed.networks import link_at, network_at, read_network, read_networks


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_the_named_ones_are_there():
    networks = read_networks()
    assert list(networks) == ["1gbe", "10gbe", "25gbe", "100gbe", "1gbe-fitted"]
    assert [network.bandwidth for network in networks.values()] == [1e9, 10e9, 25e9, 100e9, 1e9]
    assert all(network.source for network in networks.values())
    # The constant of the published all-reduce fit among 16 workers holds the 30 steps of a ring.
    assert networks["10gbe"].at(16).all_reduce.start == pytest.approx(9.08e-4, rel=2e-3)


@pytest.mark.parametrize(
    "workers, a, b", [(2, 1.6e-3, 1.0e-8), (4, 2.7e-3, 1.3e-8), (8, 4e-3, 1.5e-8), (16, 1.1e-2, 1.7e-8)]
)
def test_the_authors_fit_takes_half_of_their_two_collectives(workers: int, a: float, b: float):
    """They gather n values and n indices of 4 bytes in 2 (a + 4 b n P) seconds; each of the two takes half."""
    network, n = read_network("1gbe-fitted").at(workers), 25_557
    assert 2 * network.all_gather.seconds(4 * n) == pytest.approx(2 * (a + 4 * b * n * workers))
    assert network.all_reduce == read_network("1gbe").at(workers).all_reduce


def test_a_fit_is_of_its_numbers_of_workers_only():
    assert not read_network("1gbe-fitted").serves(32) and read_network("1gbe").serves(10_000)
    with pytest.raises(ConfigError, match="fitted for 2, 4, 8 and 16 workers, not for 32"):
        network_at("1gbe-fitted", 32)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="no network '10gb'; did you mean '10gbe'?"):
        network_at("10gb", 16)


def test_outside_of_the_checkout_nothing_has_a_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="names are in replications"):
        network_at("10gbe", 16)
    with pytest.raises(ConfigError, match="give --alpha, in seconds a step"):
        link_at(10, 16)
    assert link_at(10, 16, 1e-5) == LinkCosts(workers=16, alpha=1e-5, bandwidth=10e9).network()


LINE = {"start": 1e-3, "per_byte": 1e-9}


def test_files_hold_lines_a_link_or_the_costs_of_a_run(tmp_path):
    path = tmp_path / "net.yaml"
    lines = {"workers": 4, "all_gather": LINE, "all_reduce": LINE}
    path.write_text(yaml.safe_dump(lines))
    assert network_at(str(path), 4).all_gather.start == 1e-3
    with pytest.raises(ConfigError, match="holds times of 4 workers, not of 16; give --workers 4"):
        network_at(str(path), 16)
    path.write_text(yaml.safe_dump({"layers": {}, "network": lines}))
    assert network_at(str(path), 4).all_reduce.per_byte == 1e-9
    path.write_text(yaml.safe_dump({"workers": 4, "alpha": 1e-5, "bandwidth": 1e9}))
    assert network_at(str(path), 64) == LinkCosts(workers=64, alpha=1e-5, bandwidth=1e9).network()
    path.write_text(yaml.safe_dump(lines | {"all_gahter": LINE}))
    with pytest.raises(ConfigError, match="did you mean 'all_gather'"):
        network_at(str(path), 4)


def test_a_link_without_alpha_is_as_slow_to_start_as_the_named_ones():
    assert link_at(10, 16).all_reduce == read_network("10gbe").at(16).all_reduce

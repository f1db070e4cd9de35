"""Costs can be numbers, a link's constants or files, and end up as numbers; wrong ones are refused in a sentence."""

import math

import pytest
import yaml

from suite.config import validate_config
from suite.config.costs import LayerCosts, LinearCost, LinkCosts
from suite.errors import ConfigError

LAYERS = {
    "forward": 0.01,
    "layers": [{"name": "a", "backward": 0.02, "select": 0.001}, {"name": "b", "backward": 0.03}],
}
NETWORK = {
    "workers": 16,
    "all_gather": {"start": 1e-3, "per_byte": 1e-9},
    "all_reduce": {"start": 2e-3, "per_byte": 2e-9},
}
LINK = {"workers": 16, "alpha": 1e-5, "bandwidth": 1e9}


def costs(**parts):
    return validate_config({"method": "lags", "costs": {"layers": LAYERS, "network": NETWORK} | parts})


def test_files_are_read_into_the_configuration(tmp_path):
    for name, values in (("layers", LAYERS), ("network", NETWORK)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(values))
    read = costs(layers=str(tmp_path / "layers.yaml"), network=str(tmp_path / "network.yaml"))
    assert read == costs() and validate_config(read.to_dict()) == read


def test_sums():
    layers = costs().costs.layers
    assert (layers.backward, layers.select) == (0.05, 0.001)


def test_a_links_collectives():
    """Recursive doubling in 4 steps and a ring in 30: 15 times a worker's bytes, and 15/8 of them."""
    network = costs(network=LINK).costs.network
    assert network.all_gather.seconds(1000) == pytest.approx(4e-5 + 15 * 8e-9 * 1000)
    assert network.all_reduce.seconds(1000) == pytest.approx(30e-5 + 30 / 16 * 8e-9 * 1000)
    assert "1 Gb/s" in network.source


def test_one_worker_has_nothing_to_exchange():
    network = LinkCosts(workers=1, alpha=1, bandwidth=1).network()
    assert network.all_gather == network.all_reduce == LinearCost(start=0, per_byte=0)


def test_a_link_is_found_again_in_its_collectives():
    network = LinkCosts(**LINK).network()
    assert (network.link.start, network.link.per_byte) == pytest.approx((1e-5, 8e-9))
    assert network.bandwidth == pytest.approx(1e9)
    faster, expected = network.at_bandwidth(4e9), LinkCosts(**LINK | {"bandwidth": 4e9}).network()
    for name in ("all_gather", "all_reduce"):
        assert getattr(faster, name).start == getattr(expected, name).start
        assert getattr(faster, name).per_byte == pytest.approx(getattr(expected, name).per_byte)


def test_bytes_that_cost_nothing_have_no_bandwidth():
    network = LinkCosts(**LINK | {"workers": 1}).network()
    assert math.isinf(network.bandwidth)
    with pytest.raises(ValueError, match="no bandwidth to change"):
        network.at_bandwidth(1e9)


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"layers": {"forward": 1, "layers": []}}, "costs.layers.layers"),
        ({"layers": LAYERS | {"layers": LAYERS["layers"][:1] * 2}}, "layer 'a' has two times"),
        ({"layers": LAYERS | {"forward": -1}}, "greater than or equal to 0"),
        ({"layers": LAYERS | {"forward": math.inf}}, "finite"),
        ({"layers": "nowhere.yaml"}, "nowhere.yaml cannot be read"),
        ({"network": NETWORK | {"workers": 4}}, "costs.network is of 4 workers and the world has 16"),
        ({"network": {"workers": 16, "alpha": 1}}, "costs.network.bandwidth: field required"),
        ({"network": LINK | {"alhpa": 1}}, "unknown key 'alhpa'; did you mean 'alpha'?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(parts: dict, message: str):
    with pytest.raises(ConfigError) as refused:
        costs(**parts)
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_adaptive_ratios_need_costs():
    method = {"name": "lags", "adaptive": {}}
    with pytest.raises(ConfigError, match="is planned from costs, and there are none; .*suite measure layers"):
        validate_config({"method": method})
    validate_config({"method": method, "costs": {"layers": LAYERS, "network": NETWORK}})


@pytest.mark.parametrize(
    "names, message",
    [
        (("a", "b", "c"), "lacks the model's layer 'c'"),
        (("a",), "has a layer 'b' that the model lacks"),
        (("b", "a"), "in another order"),
    ],
)
def test_times_of_another_model_are_refused(names: tuple[str, ...], message: str):
    layers = LayerCosts.model_validate(LAYERS)
    layers.check(("a", "b"))
    with pytest.raises(ConfigError, match=message):
        layers.check(names)


def test_costs_of_a_run_are_one_file(tmp_path):
    file = tmp_path / "costs.yaml"
    file.write_text(yaml.safe_dump({"layers": LAYERS, "network": NETWORK}))
    config = validate_config({"method": {"name": "lags", "adaptive": {}}, "costs": str(file)})
    assert config.costs.layers == LayerCosts.model_validate(LAYERS) and config.costs.network.workers == 16

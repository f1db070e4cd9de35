"""What `suite plan` and `suite predict` say, in this process: starting a command takes longer than they do."""

import json

import pytest
from typer.testing import CliRunner

from helpers import ROOT, tiny_settings
from suite.cli.app import app
from suite.speed.predictions import layout_of
from suite.config import validate_config
from suite.errors import ConfigError

LINK = {"workers": 4, "alpha": 1e-5, "bandwidth": 1e9}
RESNET50 = ["predict", "replications/lags2019/resnet50.yaml", "--published", "ResNet-50"]


def suite(*arguments) -> str:
    """Standard output of a command that succeeds; raises what it raises."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception:
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def costs() -> dict:
    """Made-up times of the tiny model on a link."""
    _, layout = layout_of(validate_config(tiny_settings()))
    layers = [{"name": name, "backward": 1e-3, "select": 1e-5} for name in layout.names]
    return {"layers": {"forward": 2e-3, "layers": layers, "source": "made up"}, "network": LINK}


def test_without_costs_it_says_how_to_get_them(config_file):
    assert "no costs, so no times: set costs to the costs.yaml of a run" in suite("plan", config_file())


def test_with_costs_it_predicts(config_file, costs, tmp_path):
    method = {"name": "lags", "density": 0.05, "messages": "merged", "adaptive": {"c_u": 20}}
    said = suite("plan", config_file(method=method, costs=costs), "--figure", tmp_path / "timeline.svg")
    assert "this configuration" in said and "Layers: made up" in said
    assert (tmp_path / "timeline.svg").read_text().rstrip().endswith("</svg>")


def test_one_object(config_file, costs):
    config = config_file(method={"name": "lags", "density": 0.05, "messages": "layer"}, costs=costs)
    found = json.loads(suite("plan", config, "--json", "--compare-merging"))
    rows = {row["plan"]: row for row in found["predictions"]}
    own = rows["this configuration"]
    assert own["messages"] == len(found["messages"]) == len(costs["layers"]["layers"])
    assert own["iteration_s"] == rows["LAGS, layer-wise"]["iteration_s"]
    assert rows["SLGS"]["hidden_share"] == 0 and rows["LAGS, merged"]["iteration_s"] <= own["iteration_s"] * (1 + 2e-9)
    assert found["bytes_sent"] == 3 * 8 * found["entries"]
    compact = json.loads(suite("plan", config, "--json", "--set", "method.wire={values: bfloat16, indices: compact}"))
    assert compact["bytes_sent"] < 0.75 * found["bytes_sent"]
    assert compact["predictions"][0]["bytes"] == found["predictions"][0]["bytes"] / 2
    assert 0 <= found["merging_on_random_networks"]["mean_gap"]


def test_a_figure_needs_costs(config_file, tmp_path):
    with pytest.raises(ConfigError, match="--figure draws a prediction, which needs costs"):
        suite("plan", config_file(), "--figure", tmp_path / "timeline.svg")


def test_costs_of_another_model_are_refused(config_file, costs):
    others = costs | {"layers": costs["layers"] | {"layers": costs["layers"]["layers"][1:]}}
    with pytest.raises(ConfigError, match="costs.layers lacks the model's layer 'embedding.weight'"):
        suite("plan", config_file(costs=others))


@pytest.fixture(scope="module")
def resnet50() -> dict:
    """The published ResNet-50 on links of four speeds, with the authors' selection and a quick one."""
    speeds = [word for gigabits in (1, 10, 100, 100_000) for word in ("--bandwidth", gigabits)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return json.loads(suite(*RESNET50, *speeds, "--select", 0.1321, "--select", 0.004, "--json"))


def test_ratios_relax_with_bandwidth_and_reach_one(resnet50):
    networks = ["1 Gb/s", "10 Gb/s", "100 Gb/s", "100000 Gb/s"]
    for select in (0.1321, 0.004):
        for rule in ("later", "next"):
            by_network = [
                [r["c"] for r in resnet50["ratios"] if (r["network"], r["selection_s"], r["rule"]) == (n, select, rule)]
                for n in networks
            ]
            assert [len(ratios) for ratios in by_network] == [161] * 4
            for slower, faster in zip(by_network, by_network[1:], strict=False):
                assert all(a >= b for a, b in zip(slower, faster, strict=True))
            assert 1 in by_network[2]
    everything = [r["c"] for r in resnet50["ratios"] if r["network"] == networks[-1] and r["rule"] == "later"]
    assert everything.count(1) > 0.9 * len(everything)


def test_predicted_iterations_keep_their_order(resnet50):
    rows = {(r["network"], r["selection_s"], r["plan"]): r["iteration_s"] for r in resnet50["predictions"]}
    for network, select in {(network, select) for network, select, _ in rows}:

        def of(plan, key=(network, select)):
            return rows[(*key, plan)]

        def not_longer(plan, *others):
            return all(of(plan) <= of(other) * (1 + 2e-9) for other in others)

        assert not_longer("LAGS, merged", "LAGS, layer-wise", "SLGS")
        assert not_longer("dense, merged", "dense, one message", "dense, layer-wise", "dense, MG-WFBP rule")
    assert resnet50["layers"].startswith("ResNet-50, published totals (forward 0.09 s, backward 0.12 s")


def test_the_tables_of_a_prediction(monkeypatch):
    monkeypatch.chdir(ROOT)
    said = suite(*RESNET50, "--bandwidth", 100)
    assert "fc.weight" in said and "of 161 layers at 1" in said and "1GbE, fitted" in said
    assert "…" not in said, "a table is too wide for 80 columns"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--published", "ResNet-51", "--bandwidth", "1"], "nobody published times of 'ResNet-51'; did you mean"),
        (["--bandwidth", "1"], "there are no layer times to predict from"),
    ],
)
def test_what_cannot_be_predicted_is_said(monkeypatch, arguments, message):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match=message):
        suite(*RESNET50[:2], *arguments)


def test_own_costs_and_a_link(config_file, costs):
    config = config_file(costs=costs)
    with pytest.raises(ConfigError, match="give --alpha, in seconds a step"):
        suite("predict", config, "--bandwidth", 1)
    own = json.loads(suite("predict", config, "--json"))["predictions"]
    link = json.loads(suite("predict", config, "--bandwidth", 1, "--alpha", "1e-5", "--json"))["predictions"]
    assert [row["iteration_s"] for row in own] == [row["iteration_s"] for row in link]

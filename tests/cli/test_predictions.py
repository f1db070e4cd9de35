"""What `suite plan` and `suite predict` say, in this process: starting a command takes longer than they do."""

import json

import pytest
from typer.testing import CliRunner

from helpers import ROOT, tiny_settings
from suite.cli.app import app
from suite.config import validate_config
from suite.errors import ConfigError
from suite.speed.subject import layout_of

LINK = {"workers": 4, "alpha": 1e-5, "bandwidth": 1e9}


def suite(*arguments) -> str:
    """Standard output of a command that succeeds; raises what it raises."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception:
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def costs() -> dict:
    """Made-up times of the tiny model on a link."""
    layout = layout_of(validate_config(tiny_settings()))
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
        return json.loads(suite("predict", "ResNet-50", *speeds, "--select", 0.1321, "--select", 0.004, "--json"))


def test_ratios_relax_with_bandwidth_and_reach_one(resnet50):
    networks = ["1 Gb/s", "10 Gb/s", "100 Gb/s", "100000 Gb/s"]
    assert list(resnet50["networks"]) == networks
    for select in (0.1321, 0.004):
        for rule in ("later", "next"):
            by_network = [
                [
                    r["c"]
                    for r in resnet50["ratios"]
                    if (r["network"], r["rule"]) == (n, rule) and r["selection_s"] == pytest.approx(select)
                ]
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


def test_the_tables_of_a_prediction(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    said = suite(
        "predict", "resnet-50", "--figure", tmp_path / "lanes.svg", "--network", "1gbe-fitted", "--network", "100gbe"
    )
    assert "fc.weight" in said and "of 161 layers at 1" in said and "\n1gbe-fitted, selection 132.1 ms" in said
    assert "…" not in said, "a table is too wide for 80 columns"
    assert (tmp_path / "lanes.svg").read_text().count("LAGS, merged") >= 2


def test_without_a_network_all_named_ones_that_serve_so_many_workers(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert list(json.loads(suite("predict", "VGG-16", "--json"))["networks"])[-1] == "1gbe-fitted"
    many = json.loads(suite("predict", "VGG-16", "--json", "--workers", 10_000))
    assert list(many["networks"]) == ["1gbe", "10gbe", "25gbe", "100gbe"] and many["workers"] == 10_000


def test_slgs_selects_from_everything_at_once(monkeypatch):
    """Its published selection takes longer than that of all layers, unless a total is given for both."""
    monkeypatch.chdir(ROOT)
    command = ("predict", "ResNet-50", "--network", "1gbe", "--json")
    by_plan = {row["plan"]: row for row in json.loads(suite(*command))["predictions"]}
    assert by_plan["SLGS"]["select_s"] == 0.1376 and by_plan["LAGS, merged"]["select_s"] == pytest.approx(0.1321)
    given = {row["plan"]: row for row in json.loads(suite(*command, "--select", 0.1))["predictions"]}
    assert given["SLGS"]["select_s"] == pytest.approx(0.1) == pytest.approx(given["LAGS, merged"]["select_s"])


def test_our_selection_comes_second(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("suite.cli.predict.measured_copies", lambda: 2.0)
    rows = json.loads(suite("predict", "ResNet-50", "--network", "10gbe", "--select-ours", "--json"))["predictions"]
    selections = list(dict.fromkeys(row["selection_s"] for row in rows))
    assert selections == pytest.approx([0.1321, 2 * 8 * 25_557_032 / 440e9])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["ResNet-51"], "nor a model of that name with published times; did you mean 'ResNet-50'"),
        (["ResNet-50", "--network", "10g"], "there is no network '10g'; did you mean '10gbe'"),
        (["ResNet-50", "--network", "1gbe-fitted", "--workers", "32"], "fitted for 2, 4, 8 and 16 workers, not for 32"),
        (["ResNet-50", "--bandwidth", "0"], "--bandwidth must be above 0"),
        (["ResNet-50", "--network", "1gbe", "--alpha", "1e-5"], "--alpha belongs to a link of --bandwidth"),
        (["laptop/digits/lags/0", "--bandwidth", "1"], "has no layer times to predict from"),
    ],
)
def test_what_cannot_be_predicted_is_said(monkeypatch, arguments, message):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match=message):
        suite("predict", *arguments)


def test_own_costs_and_a_link(config_file, costs):
    config = config_file(costs=costs)
    with pytest.raises(ConfigError, match="network is of 4 workers, not of 8; give --network or --bandwidth as well"):
        suite("predict", config, "--workers", 8)
    own = json.loads(suite("predict", config, "--json"))["predictions"]
    link = json.loads(suite("predict", config, "--bandwidth", 1, "--alpha", "1e-5", "--json"))["predictions"]
    assert [row["iteration_s"] for row in own] == [row["iteration_s"] for row in link]

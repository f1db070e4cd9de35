"""A subject is a published model, a file of layer times or a configuration; anything else is refused in a sentence."""

import subprocess
import sys

import pytest
import yaml

from helpers import ROOT, tiny_settings
from suite.errors import ConfigError
from suite.speed.subject import is_import_path, lacks_times, read_subject

LAYERS = {
    "forward": 0.01, "select_whole": 0.004, "source": "here",
    "layers": [{"name": "a", "size": 30, "backward": 0.02, "select": 0.001},
               {"name": "b", "size": 10, "backward": 0.03, "select": 0.003}],
}  # fmt: skip
LINK = {"workers": 4, "alpha": 1e-5, "bandwidth": 1e9}


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def layers_file(tmp_path):
    path = tmp_path / "layers.yaml"
    path.write_text(yaml.safe_dump(LAYERS))
    return path


def test_a_published_model_in_any_case_with_its_density():
    subject = read_subject("lstm-ptb")
    assert (subject.name, subject.density, subject.workers) == ("LSTM-PTB", 0.004, 16)
    assert subject.layout.size == 66_034_000 and subject.published.name == "LSTM-PTB"
    assert read_subject("ResNet-50", ["method.density=0.01", "layers.forward=0.1"]).density == 0.01
    assert read_subject("ResNet-50", ["layers.forward=0.1"]).layers.forward == 0.1


def test_a_file_of_layer_times(layers_file):
    subject = read_subject(str(layers_file))
    assert subject.layout.names == ("a", "b") and subject.layout.sizes == (30, 10)
    assert (subject.density, subject.layers.source, subject.published) == (0.001, "here", None)
    wire = read_subject(str(layers_file), ["method.wire={values: bfloat16}"]).method.wire
    assert wire.values == "bfloat16"


def test_a_configuration_whose_times_have_sizes_needs_no_model(tmp_path):
    path = tmp_path / "config.yaml"
    method = {"name": "slgs", "density": 0.02}
    path.write_text(yaml.safe_dump(tiny_settings() | {"method": method, "costs": {"layers": LAYERS, "network": LINK}}))
    subject = read_subject(str(path), ["world.workers=4"])
    assert subject.layout.sizes == (30, 10) and subject.density == 0.02
    assert (subject.workers, subject.network.workers, subject.experiment.model.name) == (4, 4, "lstm")


def test_a_configuration_without_sizes_gets_them_from_its_model(config_file):
    bare = LAYERS | {"layers": [{"name": "embedding.weight", "backward": 1}]}
    with pytest.raises(ConfigError, match="costs.layers lacks the model's layer 'lstm.weight_ih_l0'"):
        read_subject(str(config_file(costs={"layers": bare, "network": LINK})))


def test_which_subjects_have_to_be_measured(config_file, layers_file):
    assert lacks_times("laptop/digits/lags/0") and lacks_times(str(config_file()))
    assert not lacks_times("ResNet-50") and not lacks_times(str(layers_file))
    assert not lacks_times(str(config_file(costs={"layers": LAYERS, "network": LINK})))


@pytest.mark.parametrize(
    "text, overrides, message",
    [
        ("ResNet-51", [], "neither a file 'ResNet-51' nor a model of that name with published times; did you mean"),
        ("laptop/digits/lags/0", [], "laptop/digits/lags/0 has no layer times to predict from; set costs.layers"),
        ("laptop/digits/lags/9", [], "there is no cell"),
        ("ResNet-50", ["method.densty=0.1"], "ResNet-50: .*unknown key 'densty'; did you mean 'density'?"),
        ("ResNet-50", ["densty=0.1"], "ResNet-50: unknown key 'densty'"),
        ("ResNet-50", ["method.name=lagz"], "unknown method 'lagz'"),
    ],
)
def test_refusals(text: str, overrides: list[str], message: str):
    with pytest.raises(ConfigError, match=message) as refused:
        read_subject(text, overrides)
    assert "\n" not in str(refused.value)


def test_layer_times_without_sizes_are_refused(layers_file):
    layers_file.write_text(yaml.safe_dump(LAYERS | {"layers": [{"name": "a", "backward": 1}]}))
    with pytest.raises(ConfigError, match="holds no sizes of layers; measure it again with `suite measure layers`"):
        read_subject(str(layers_file))


def test_selection_is_scaled_as_a_whole(layers_file):
    subject = read_subject(str(layers_file)).with_selection(0.1)
    assert [layer.select for layer in subject.layers.layers] == pytest.approx([0.025, 0.075])
    assert subject.layers.select_whole is None
    none = read_subject(str(layers_file)).with_selection(0.0)
    assert none.layers.select == 0 and none.with_selection(0.4).layers.layers[0].select == pytest.approx(0.3)


def test_our_selection_takes_its_copies_in_the_devices_memory(layers_file):
    """Two copies of 25.6 M floats move 409 MB, at 440 GB/s in 0.93 ms."""
    ours = read_subject("ResNet-50").with_our_selection(2.0)
    assert ours.layers.select == pytest.approx(2 * 8 * 25_557_032 / 440e9) and ours.layers.select_whole is None
    with pytest.raises(ConfigError, match="already hold our selection"):
        read_subject(str(layers_file)).with_our_selection(2.0)


def test_what_an_import_path_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_import_path("package.module:function") and is_import_path("m:f")
    assert not is_import_path("ResNet-50") and not is_import_path("runs/costs.yaml") and not is_import_path("a:b:c")
    (tmp_path / "odd:name").touch()
    assert not is_import_path("odd:name")


def test_predicting_starts_without_torch():
    code = (
        "import sys; from suite.speed.subject import read_subject; from suite.speed.networks import network_at; "
        "from suite.speed.predictions import predictions; import suite.cli.app; "
        "predictions(read_subject('ResNet-50'), network_at('1gbe', 16)); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)

"""Bad input gets one sentence with the rule before anything starts."""

import pytest

from suite.config import load_config, validate_config
from suite.config.values import apply_overrides
from suite.errors import ConfigError

REFUSED = [
    ({"method": {"name": "lags", "densty": 0.1}}, "unknown key 'densty'; did you mean 'density'?"),
    ({"method": "lagz"}, "unknown method 'lagz'; did you mean 'lags'?"),
    ({"method": {"name": "dense", "density": 0.1}}, "unknown key 'density'; known are messages, name"),
    ({"method": {"density": 0.1}}, "a method is a name or a mapping with a name"),
    ({"method": {"name": "lags", "density": -0.1}}, "method.density: input should be greater than 0, not -0.1"),
    ({"method": {"name": "slgs", "density": 1.5}}, "less than or equal to 1"),
    (
        {"method": {"name": "lags", "density_warmup": [0.5, 0]}},
        "method.density_warmup.1: input should be greater than 0",
    ),
    ({"method": {"name": "lags", "lr_placement": "between"}}, "method.lr_placement"),
    ({"optimzer": {}}, "unknown key 'optimzer'; did you mean 'optimizer'?"),
    ({"optimizer": {"lr": 0}}, "optimizer.lr: input should be greater than 0"),
    ({"optimizer": {"lr": float("nan")}}, "optimizer.lr"),
    ({"world": {"processes": 3, "transport": "torch"}}, "3 does not divide 16; possible are 1, 2, 4, 8, 16"),
    ({"world": {"processes": 4}}, "the virtual transport is one process, not 4"),
    ({"world": {"transport": "torch", "controller": "mpi"}}, "world.controller is Horovod's"),
    ({"world": {"transport": "horovd"}}, "world.transport"),
    ({"model": {"name": "lstm"}}, "model lstm reads text, but dataset digits is images"),
    ({"model": {"name": "resnet20", "hidden": 3}}, "unknown key 'hidden'"),
    ({"data": {"name": "digits", "image_size": 4}}, "data.image_size"),
    (
        {"model": {"name": "vgg16"}},
        "model vgg16 halves images five times and needs 32 pixels a side, not 8; set data.image_size to 32 or more",
    ),
    (
        {"model": {"name": "inception_v4"}, "data": {"name": "synthetic", "image_size": 74}},
        "model inception_v4 halves images five times and needs 75 pixels a side, not 74",
    ),
    ({"train": {"epochs": 0}}, "train.epochs: input should be greater than 0, not 0"),
    ({"train": {"batchnorm": "mine"}}, "train.batchnorm"),
    ({"assumption": {"every": -1}}, "assumption.every"),
]


@pytest.mark.parametrize("values, message", REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_refusals(values: dict, message: str):
    with pytest.raises(ConfigError) as refused:
        validate_config({"method": "lags"} | values)
    text = str(refused.value)
    assert message.lower() in text.lower() and "\n" not in text


def test_every_default_is_written_out():
    resolved = validate_config({"method": "lags"}).to_dict()
    assert resolved["method"]["density"] == 0.001 and resolved["world"]["workers"] == 16
    assert validate_config(resolved).to_dict() == resolved


def test_overrides_are_yaml_and_merge():
    values = apply_overrides(
        {"world": {"workers": 4}}, ["world.threads=2", "method={name: lags, density: 0.1}", "train.seed=7"]
    )
    assert values == {
        "world": {"workers": 4, "threads": 2},
        "method": {"name": "lags", "density": 0.1},
        "train": {"seed": 7},
    }


@pytest.mark.parametrize("override", ["world.threads", "=3", "a..b=1"])
def test_bad_overrides(override: str):
    with pytest.raises(ConfigError, match="is not an override; write --set section.key=value"):
        apply_overrides({}, [override])


@pytest.mark.parametrize(
    "content, message",
    [
        ("- a\n- b\n", "must hold a mapping"),
        ("a: [1\n", "is not valid YAML at line"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_bad_files(tmp_path, content, message: str):
    path = tmp_path / "x.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=message):
        load_config(str(path))


def test_a_missing_file_is_named():
    with pytest.raises(ConfigError, match="there is no configuration 'nowhere.yaml'"):
        load_config("nowhere.yaml")

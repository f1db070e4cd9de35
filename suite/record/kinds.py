"""Sorts the segments of a model by the kind of layer they belong to, from names and sizes alone."""

import re
from collections.abc import Iterable

# The first pattern found in a dotted parameter name decides; those below the gap only where sizes told nothing.
_NAMED = (
    ("whole gradient", r"^gradient$"),
    ("normalisation", r"(^|[._])(bn|norm|batchnorm|layernorm)|(^|\.)ln\d*\."),
    ("embedding", r"embed|(^|\.)encoder\.weight$"),
    ("recurrent", r"lstm|gru|rnn|(weight|bias)_[ih]h"),
    ("linear", r"(^|\.)(fc|linear|classifier|decoder|head|last_linear|output)\d*\."),
)
_GUESSED = (
    # torchvision calls the convolutional part of its networks "features".
    ("convolution", r"conv|downsample|shortcut|(^|\.)features\."),
    ("linear", r"^layers\."),
)
# From the model's body to its ends, as figures and tables stack them.
KINDS = ["whole gradient", "embedding", "convolution", "recurrent", "normalisation", "linear", "bias", "other"]


def layer_kinds(segments: Iterable[str], sizes: Iterable[int]) -> list[str]:
    """Kind of each segment, one of KINDS, given parameter names and their numbers of entries.

    Where a name is silent ('features.1.weight'), a weight as long as its bias is a normalisation, as nothing else
    has one scale and one shift a channel. The biases of all other layers are a kind of their own: they are as short as
    normalisations, and a bias before a normalisation has a gradient of nothing but rounding.
    """
    names = list(segments)
    size_of = dict(zip(names, sizes, strict=True))

    def kind(name: str) -> str:
        module, _, leaf = name.rpartition(".")
        named = _first(_NAMED, name)
        if named is None:
            weight, bias = size_of.get(f"{module}.weight"), size_of.get(f"{module}.bias")
            named = "normalisation" if weight is not None and weight == bias else _first(_GUESSED, name)
        return "bias" if leaf.startswith("bias") and named != "normalisation" else named or "other"

    return [kind(name) for name in names]


def _first(patterns: tuple[tuple[str, str], ...], name: str) -> str | None:
    return next((kind for kind, pattern in patterns if re.search(pattern, name.lower())), None)

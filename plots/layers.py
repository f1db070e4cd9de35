"""Sorts the segments of a model by the kind of layer they belong to, from names and sizes alone."""

import re

import pandas as pd

# The first pattern found in a dotted parameter name decides.
_KINDS = (
    ("whole gradient", r"^gradient$"),
    ("normalisation", r"(^|[._])(bn|norm|batchnorm|layernorm)|(^|\.)ln\d*\."),
    ("embedding", r"embed|(^|\.)encoder\.weight$"),
    ("recurrent", r"lstm|gru|rnn|(weight|bias)_[ih]h"),
    ("linear", r"(^|\.)(fc|linear|classifier|decoder|head|last_linear|output)\d*\."),
    ("convolution", r"conv|downsample|shortcut"),
)
# From the model's body to its ends, as the heat map stacks them.
ORDER = ["whole gradient", "embedding", "convolution", "recurrent", "normalisation", "linear", "other"]


def layer_kinds(segments: pd.Series, sizes: pd.Series) -> list[str]:
    """Kind of each segment, given parameter names and their numbers of entries.

    Where a name is silent ('features.1.weight'), a weight as long as its bias is a normalisation, as nothing else
    has one scale and one shift a channel; a weight and a longer one tell nothing, so they stay 'other'.
    """
    size_of = dict(zip(segments, sizes, strict=True))

    def kind(name: str) -> str:
        named = next((kind for kind, pattern in _KINDS if re.search(pattern, name.lower())), None)
        if named is not None:
            return named
        module = name.rpartition(".")[0]
        weight, bias = size_of.get(f"{module}.weight"), size_of.get(f"{module}.bias")
        return "normalisation" if weight is not None and weight == bias else "other"

    return [kind(name) for name in segments]

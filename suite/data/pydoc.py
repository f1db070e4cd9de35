"""The text of Python's own documentation topics: real English with code in it, shipped with the interpreter."""

import re
from collections import Counter

import numpy as np
import torch

from suite.config.experiment import PydocConfig
from suite.data.dataset import TextDataset

UNKNOWN, END = "<unk>", "<eos>"
_TOKEN = re.compile(r"[a-z_]+|[0-9]|[^\sa-z0-9_]")


def load_pydoc(config: PydocConfig) -> TextDataset:
    """Words, digits and punctuation, lower case, a line's end as a token; rare words become <unk>.

    The topics are shuffled by `split_seed` and the last ones are the test text, so no topic is in both. The text, and
    with it every number, depends on the Python release: the run record holds the version and the data's hash.
    """
    from pydoc_data.topics import topics

    names = sorted(topics)
    order = np.random.default_rng(config.split_seed).permutation(len(names))
    n_test = max(1, round(len(names) * config.test_fraction))
    train_names, test_names = ([names[i] for i in part] for part in (order[:-n_test], order[-n_test:]))
    train, test = ([token for name in part for token in tokenize(topics[name])] for part in (train_names, test_names))
    train = train[: config.max_train_tokens]
    counts = Counter(train)
    counts.pop(END, None)
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[: config.vocabulary - 2]
    vocabulary = (UNKNOWN, END, *frequent)
    number = {word: i for i, word in enumerate(vocabulary)}
    encoded = [torch.tensor([number.get(token, 0) for token in tokens]) for tokens in (train, test)]
    return TextDataset(*encoded, vocabulary=vocabulary, sequence_length=config.sequence_length)


def tokenize(text: str) -> list[str]:
    """Tokens of a topic; blank lines are dropped, the indentation is not kept."""
    tokens: list[str] = []
    for line in text.lower().splitlines():
        words = _TOKEN.findall(line)
        if words:
            tokens += [*words, END]
    return tokens

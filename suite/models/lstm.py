"""Word-level language model in the shape of Zaremba et al. 2014: embedding, stacked LSTM, linear decoder."""

from contextlib import nullcontext

import torch
from torch import nn

from suite.config.experiment import LSTMConfig

Hidden = tuple[torch.Tensor, ...]


def _keeps_float32(x: torch.Tensor) -> bool:
    """Whether autocast asks for bfloat16 on a processor for which torch has no recurrent layers of that type."""
    return (
        x.device.type == "cpu"
        and torch.is_autocast_enabled("cpu")
        and not torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    )


class LSTMLanguageModel(nn.Module):
    """Tokens int64 [B, T] and hidden state in, logits [B, T, vocabulary] and the new hidden state out."""

    def __init__(self, vocabulary: int, config: LSTMConfig):
        super().__init__()
        between = config.dropout if config.layers > 1 else 0.0
        self.embedding = nn.Embedding(vocabulary, config.embedding)
        self.lstm = nn.LSTM(config.embedding, config.hidden, config.layers, batch_first=True, dropout=between)
        self.decoder = nn.Linear(config.hidden, vocabulary)
        self.dropout = nn.Dropout(config.dropout)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, tokens: torch.Tensor, hidden: Hidden | None) -> tuple[torch.Tensor, Hidden]:
        embedded = self.dropout(self.embedding(tokens))
        with torch.autocast("cpu", enabled=False) if _keeps_float32(embedded) else nullcontext():
            out, hidden = self.lstm(embedded, hidden)
        return self.decoder(self.dropout(out)), hidden

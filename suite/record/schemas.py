"""Columns of a run's tables."""

import pyarrow as pa

_PHASES = [f"{name}_s" for name in ("compute", "select", "exchange", "apply", "measure", "other", "iteration")]

# One row an iteration: loss is the mean over workers; seconds are process 0's; bytes are one worker's gradient traffic.
ITERATIONS = pa.schema(
    [("iteration", pa.int64()), ("epoch", pa.int32()), ("lr", pa.float64()), ("density", pa.float64()),
     ("loss", pa.float64()), ("skipped", pa.bool_()), ("bytes_sent", pa.float64()), ("timestamp", pa.float64()),
     *((name, pa.float64()) for name in _PHASES)]
)  # fmt: skip

# One row an iteration and segment: see suite.measure.assumption. Empty cells where a quantity has no value.
ASSUMPTION = pa.schema(
    [("iteration", pa.int64()), ("segment", pa.string()), ("d", pa.int64()), ("k", pa.int64()),
     ("delta", pa.float64()), ("delta_random", pa.float64()), ("norm_ratio", pa.float64())]
)  # fmt: skip

# One row an epoch; bytes and seconds are cumulative.
EPOCHS = pa.schema(
    [("epoch", pa.int32()), ("iteration", pa.int64()), ("lr", pa.float64()), ("train_loss", pa.float64()),
     ("test_loss", pa.float64()), ("metric", pa.string()), ("value", pa.float64()), ("bytes_sent", pa.float64()),
     ("seconds", pa.float64()), ("timestamp", pa.float64())]
)  # fmt: skip

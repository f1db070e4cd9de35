"""Columns of a run's tables."""

import pyarrow as pa

_PHASES = [f"{name}_s" for name in ("compute", "select", "exchange", "apply", "measure", "other", "iteration")]

# One row an iteration: loss is the mean over workers; seconds are process 0's; bytes are one worker's gradient traffic;
# batch_size is of each worker.
ITERATIONS = pa.schema(
    [("iteration", pa.int64()), ("epoch", pa.int32()), ("lr", pa.float64()), ("density", pa.float64()),
     ("loss", pa.float64()), ("skipped", pa.bool_()), ("bytes_sent", pa.float64()), ("timestamp", pa.float64()),
     *((name, pa.float64()) for name in _PHASES), ("batch_size", pa.int64())]
)  # fmt: skip

# One row an iteration and segment: see suite.measure.assumption. Empty cells where a quantity has no value.
ASSUMPTION = pa.schema(
    [("iteration", pa.int64()), ("segment", pa.string()), ("d", pa.int64()), ("k", pa.int64()),
     ("delta", pa.float64()), ("delta_random", pa.float64()), ("norm_ratio", pa.float64())]
)  # fmt: skip

# One row an iteration and quantity that a method measures where `assumption.every` asks: xi and error_ratio (see
# suite.measure.xi), or what payloads note of a message, such as gTop-k's lost_share.
OBSERVATIONS = pa.schema(
    [("iteration", pa.int64()), ("segment", pa.string()), ("quantity", pa.string()), ("value", pa.float64())]
)

# One row an epoch; bytes, seconds, rounds (see suite.world.World) and base batches of a worker are cumulative.
EPOCHS = pa.schema(
    [("epoch", pa.int32()), ("iteration", pa.int64()), ("lr", pa.float64()), ("train_loss", pa.float64()),
     ("test_loss", pa.float64()), ("metric", pa.string()), ("value", pa.float64()), ("bytes_sent", pa.float64()),
     ("seconds", pa.float64()), ("timestamp", pa.float64()), ("rounds", pa.int64()), ("batches", pa.int64())]
)  # fmt: skip

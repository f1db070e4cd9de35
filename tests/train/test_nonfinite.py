"""One bad number anywhere: all workers skip together, residuals untouched, and repetition ends the run."""

import math

import pandas as pd
import pytest
import torch

from suite.errors import SuiteError
from training import summary_of, trainer


def poison(run, iterations: set[int], value: float, worker: int = 2) -> None:
    """Put a bad number into one worker's gradient in some iterations (counted from 1)."""
    real = run.exchange._take

    def take(parameter, number):
        if run.exchange._receiver == worker and run.iteration in iterations and number == 1:
            parameter.grad.view(-1)[-1] = value
        real(parameter, number)

    run.exchange._take = take


@pytest.mark.parametrize("method", ["dense", "slgs", "lags"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_all_skip_and_residuals_stay(tiny, tmp_path, method: str, value: float):
    run = trainer(tiny(method=method, train={"max_iterations": 8}), tmp_path)
    poison(run, {4}, value)
    states = {}
    real = run._iterate

    def iterate(epoch, number):
        result = real(epoch, number)
        residuals = [None if w.residual is None else w.residual.clone() for w in run.workers]
        states[run.iteration] = (run.flat.vector.clone(), residuals, [w.hidden[0].clone() for w in run.workers])
        return result

    run._iterate = iterate
    run.run()
    before, after = states[3], states[4]
    assert torch.equal(before[0], after[0])
    for a, b in zip(before[1] + before[2], after[1] + after[2], strict=True):
        assert (a is None and b is None) or torch.equal(a, b)
    assert torch.isfinite(run.flat.vector).all() and not torch.equal(run.flat.vector, after[0])
    rows = pd.read_parquet(tmp_path / "iterations.parquet")
    assert list(rows.loc[rows["skipped"], "iteration"]) == [4] and summary_of(tmp_path)["skipped"] == 1


def test_three_in_a_row_end_the_run(tiny, tmp_path):
    run = trainer(tiny(train={"max_iterations": 20}), tmp_path)
    poison(run, set(range(4, 20)), math.nan)
    with pytest.raises(SuiteError, match="3 iterations in a row, the last was 6"):
        run.run()
    assert not (tmp_path / "summary.json").exists()


def test_batchnorm_statistics_forget_a_skipped_batch(tiny, tmp_path):
    config = tiny(model={"name": "resnet20"}, data={"name": "digits"}, train={"max_iterations": 2}, method="dense")
    run = trainer(config, tmp_path)
    run.task.start_epoch(0, run.workers)
    run.exchange.start_epoch(0)
    poison(run, {1}, math.nan)
    before = {name: buffer.clone() for name, buffer in run.workers[0].buffers.items()}
    run._iterate(0, 0)
    assert all(torch.equal(buffer, before[name]) for name, buffer in run.workers[0].buffers.items())
    run._iterate(0, 1)
    assert not torch.equal(run.workers[0].buffers["bn1.running_mean"], before["bn1.running_mean"])

"""When a run's test metric is as good as asked, in both directions."""

import math

import pandas as pd
import pytest

from suite.record.reach import spent_until, training_time


@pytest.mark.parametrize(
    "metric, values, goal, expected",
    [("test_accuracy", [0.5, 0.8, 0.7, 0.9], 0.8, 20), ("test_accuracy", [0.5, 0.6], 0.8, math.inf),
     ("test_perplexity", [200.0, 120.0, 110.0], 119.0, 30), ("test_perplexity", [], 1.0, math.inf)],
)  # fmt: skip
def test_the_first_epoch_that_is_good_enough(metric: str, values: list[float], goal: float, expected: float):
    rows = [{"epoch": n, "iteration": 10 * n, "metric": metric, "value": v} for n, v in enumerate(values, start=1)]
    frame = pd.DataFrame(rows, columns=["epoch", "iteration", "metric", "value"])
    assert spent_until(frame.iloc[::-1], goal) == expected


def test_another_column_counts_as_well():
    rows = [{"metric": "test_accuracy", "value": value, "time": time} for value, time in ((0.5, 1.5), (0.9, 3.0))]
    assert spent_until(pd.DataFrame(rows), 0.8, "time") == 3.0


def test_time_counts_base_batches_and_iterations_apart():
    epochs = pd.DataFrame({"method": ["a", "b"], "iteration": [10, 2], "batches": [10, 10]})
    times = pd.DataFrame({"method": ["a"], "iteration_s": [3.0], "compute_s": [1.0]})
    assert training_time(epochs, times).time.tolist() == [10 * 3.0]
    times = pd.DataFrame({"method": ["a", "b"], "iteration_s": 3.0, "compute_s": 1.0})
    assert training_time(epochs, times).time.tolist() == [30.0, 10 * 1.0 + 2 * 2.0]

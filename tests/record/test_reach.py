"""When a run's test metric is as good as asked, in both directions."""

import math

import pandas as pd
import pytest

from suite.record.reach import iterations_to


@pytest.mark.parametrize(
    "metric, values, goal, expected",
    [("test_accuracy", [0.5, 0.8, 0.7, 0.9], 0.8, 20), ("test_accuracy", [0.5, 0.6], 0.8, math.inf),
     ("test_perplexity", [200.0, 120.0, 110.0], 119.0, 30), ("test_perplexity", [], 1.0, math.inf)],
)  # fmt: skip
def test_the_first_epoch_that_is_good_enough(metric: str, values: list[float], goal: float, expected: float):
    rows = [{"epoch": n, "iteration": 10 * n, "metric": metric, "value": v} for n, v in enumerate(values, start=1)]
    frame = pd.DataFrame(rows, columns=["epoch", "iteration", "metric", "value"])
    assert iterations_to(frame.iloc[::-1], goal) == expected

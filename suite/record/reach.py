"""How much a run spends until its test metric is as good as asked."""

import math

import pandas as pd


def higher_is_better(metric: str) -> bool:
    """The direction of a test metric of the tables."""
    return metric.endswith("accuracy")


def spent_until(epochs: pd.DataFrame, goal: float, column: str = "iteration") -> float:
    """What `column` had come to when the test metric was first as good as `goal`; infinite where it never was.

    Tests come at the end of an epoch, so the answer is one of those.

    Args:
        epochs: of one run, with the columns epoch, metric, value and `column`; in any order.
        column: one that grows, such as iteration, bytes_sent or `training_time`'s time.
    """
    if epochs.empty:
        return math.inf
    sign = 1 if higher_is_better(epochs["metric"].iloc[0]) else -1
    reached = epochs.loc[sign * (epochs["value"] - goal) >= 0, column]
    return float(reached.min()) if len(reached) else math.inf


def training_time(epochs: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """The epochs of the runs that have a predicted iteration, with `time`: seconds from the start to the epoch's end.

    A worker computes each of its base batches; all else is once an iteration, of which one may take several.

    Args:
        epochs: rows of epochs.csv, of one experiment.
        times: rows of run_times.csv of that experiment, of one network.
    """
    joined = epochs.merge(times[["method", "iteration_s", "compute_s"]].dropna(), on="method")
    rest = joined.iteration_s - joined.compute_s
    return joined.assign(time=joined.batches * joined.compute_s + joined.iteration * rest)

"""How far a run has to train until its test metric is as good as asked."""

import math

import pandas as pd


def higher_is_better(metric: str) -> bool:
    """The direction of a test metric of the tables."""
    return metric.endswith("accuracy")


def iterations_to(epochs: pd.DataFrame, goal: float) -> float:
    """Iterations after which the test metric was first as good as `goal`; infinite where it never was.

    Tests come at the end of an epoch, so the answer is one of those.

    Args:
        epochs: of one run, with the columns epoch, iteration, metric and value; in any order.
    """
    if epochs.empty:
        return math.inf
    sign = 1 if higher_is_better(epochs["metric"].iloc[0]) else -1
    reached = epochs.loc[sign * (epochs["value"] - goal) >= 0, "iteration"]
    return float(reached.min()) if len(reached) else math.inf

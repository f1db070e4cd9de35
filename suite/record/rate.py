"""How fast the gradient vanishes with the length of a run: the convergence rate of arXiv 1911.08727's theorem.

With the constant step theta / sqrt(T) the theorem bounds the mean over T iterations of ||grad f||^2 by a constant over
sqrt(T), plus a term of 1/T that holds what sparsification costs. In logarithms that is a line of slope -1/2 or steeper.
"""

import numpy as np
import pandas as pd

METRIC = "gradient_norm_squared"


def rate_points(runs: pd.DataFrame, epochs: pd.DataFrame) -> pd.DataFrame:
    """A row a run that measured full gradients: experiment, method_name, label, seed, iterations T, and two norms.

    Args:
        runs, epochs: the tables of these names.

    Returns:
        `mean` and `least` of ||grad f||^2 over the run's tests, the former being what the theorem bounds.
    """
    keys = ["experiment", "method", "seed"]
    measured = epochs[epochs["metric"] == METRIC].groupby(keys, as_index=False)["value"].agg(["mean", "min"])
    own = runs[runs["metric"] == METRIC][[*keys, "method_name", "label", "iterations", "run_id"]]
    return own.merge(measured.rename(columns={"min": "least"}), on=keys)


def slopes(points: pd.DataFrame) -> pd.DataFrame:
    """Least-squares slope of log(mean) and of log(least) over log T, of each experiment, method and seed.

    Rows with fewer than two lengths have none and are left out.
    """
    rows = []
    for (experiment, method, seed), of in points.groupby(["experiment", "method_name", "seed"], sort=False):
        if of["iterations"].nunique() < 2:
            continue
        fitted = {
            column: float(np.polyfit(np.log(of["iterations"]), np.log(of[column]), 1)[0])
            for column in ("mean", "least")
        }
        rows.append({"experiment": experiment, "method_name": method, "seed": seed} | fitted)
    return pd.DataFrame(rows, columns=["experiment", "method_name", "seed", "mean", "least"])

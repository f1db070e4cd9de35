"""The learning rate as a function of the position in training: nothing to save, nothing to restore."""

from suite.config.optimizer import OptimizerConfig


def learning_rate(
    config: OptimizerConfig, workers: int, epoch: int, iteration: int, iterations: int, step: int | None = None
) -> float:
    """lr in force, linear from lr / P in the warm-up, then falling at each decay epoch (the authors' schedule).

    With `inverse_time` all of it over lambda (t + a).

    Args:
        workers: P.
        epoch: from 0.
        iteration: within the epoch, from 0; of base batches, where batches grow.
        iterations: of an epoch.
        step: t, iterations before this one; None: the epochs' and this one's, as without growing batches.
    """
    rate = _by_epochs(config, workers, epoch, iteration, iterations)
    if config.inverse_time is None:
        return rate
    t = epoch * iterations + iteration if step is None else step
    return rate / (config.inverse_time.strength * (t + config.inverse_time.shift))


def _by_epochs(config: OptimizerConfig, workers: int, epoch: int, iteration: int, iterations: int) -> float:
    position = epoch + iteration / iterations
    if position < config.warmup_epochs:
        return config.lr * (1 + (workers - 1) * position / config.warmup_epochs) / workers
    passed = [epoch >= decay for decay in config.decay_epochs]
    if config.decay_chain and False in passed:
        passed = passed[: passed.index(False)]  # the chain stops at the first boundary still ahead
    return config.lr * config.decay_factor ** sum(passed)

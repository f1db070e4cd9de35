"""The learning rate as a function of the position in training: nothing to save, nothing to restore."""

from suite.config.experiment import OptimizerConfig


def learning_rate(config: OptimizerConfig, workers: int, epoch: int, iteration: int, iterations: int) -> float:
    """lr in force, linear from lr / P in the warm-up, then falling at each decay epoch (the authors' schedule).

    Args:
        workers: P.
        epoch: from 0.
        iteration: within the epoch, from 0.
        iterations: of an epoch.
    """
    position = epoch + iteration / iterations
    if position < config.warmup_epochs:
        return config.lr * (1 + (workers - 1) * position / config.warmup_epochs) / workers
    passed = [epoch >= decay for decay in config.decay_epochs]
    if config.decay_chain and False in passed:
        passed = passed[: passed.index(False)]  # the chain stops at the first boundary still ahead
    return config.lr * config.decay_factor ** sum(passed)

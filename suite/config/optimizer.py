"""Settings of the step: learning rate, momentum, averages of iterates."""

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from suite.config.strict import Strict


class InverseTimeConfig(Strict):
    """lr / (lambda (t + a)): Stich et al. 2018 (arXiv 1809.07599), whose experiments take lr = 2.

    Bottou's eta0 / (1 + eta0 lambda t) is lr = 1 with a = 1 / (eta0 lambda).
    """

    strength: PositiveFloat = Field(description="lambda, of strong convexity: the l2 regularisation of the model")
    shift: PositiveFloat = Field(description="a; of the order of d / k, so that sparse steps do not begin too long")


class IterateAverageConfig(Strict):
    """The output of Mem-SGD's theorem (Stich et al. 2018): iterate w_t counts with weight (a + t)^2."""

    shift: NonNegativeFloat = Field(1.0, description="a")


class OptimizerConfig(Strict):
    """SGD applied to the averaged gradient, the same on every worker."""

    lr: PositiveFloat = 0.1
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: NonNegativeFloat = Field(0.0, description="added after averaging, as in the authors' code")
    clip_norm: PositiveFloat | None = Field(None, description="clip the averaged gradient once, to this 2-norm")
    warmup_epochs: NonNegativeInt = Field(0, description="linear warm-up from lr / workers (the authors' schedule)")
    decay_epochs: tuple[PositiveInt, ...] = Field((), description="epochs (counted from 0) at whose start lr falls")
    decay_factor: float = Field(0.1, gt=0, lt=1)
    decay_chain: bool = Field(
        False,
        description="read decay_epochs as a chain of comparisons in the order given, so that a stage after a later one "
        "is never entered on its own: a quirk of the authors' code, whose schedule for PTB is (63, 60)",
    )
    inverse_time: InverseTimeConfig | None = Field(
        None, description="divide lr by lambda (t + a) in iteration t, counted from 0; lr is then the papers' gamma"
    )
    average: IterateAverageConfig | None = Field(
        None, description="test the weighted average of all iterates w_t, t = 0, 1, ..., instead of the last one"
    )

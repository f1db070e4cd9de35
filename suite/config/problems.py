"""Settings of small problems with known solutions: convex ones, and ones that minimise and maximise at once."""

from typing import ClassVar, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from suite.config.strict import Strict


class LinearConfig(Strict):
    """A linear classifier without intercept, with an l2 term of its own: logistic regression or support vectors."""

    kind: ClassVar[str] = "labelled vectors"
    name: Literal["linear"] = "linear"
    loss: Literal["logistic", "hinge"] = Field(
        "logistic", description="log(1 + exp(-y x.w)), or max(0, 1 - y x.w), which has subgradients only"
    )
    l2: NonNegativeFloat = Field(
        0.0, description="lambda of lambda / 2 ||w||^2: part of the loss and so of every gradient that is compressed"
    )


class RobustLinearConfig(Strict):
    """Logistic regression that is robust over groups: weights on the simplex over groups maximise what w minimises."""

    kind: ClassVar[str] = "grouped vectors"
    name: Literal["robust_linear"] = "robust_linear"
    l2: NonNegativeFloat = Field(0.01, description="lambda of lambda / 2 ||w||^2")
    smoothing: NonNegativeFloat = Field(
        0.1, description="mu of mu / 2 ||q - 1 / groups||^2, which makes the problem strongly concave in q"
    )


class SaddleConfig(Strict):
    """Two vectors, both 1 at first: the functions of data set `quadratics` are minimised in x and maximised in y."""

    kind: ClassVar[str] = "saddles"
    name: Literal["saddle"] = "saddle"


class LabelledConfig(Strict):
    """Random vectors with labels of a random linear classifier; what is tested on is what is trained on.

    The scales are those of Wangni et al. 2018 (arXiv 1710.09854) as we remember its section 5; everything else is our
    choice.
    """

    kind: ClassVar[str] = "labelled vectors"
    classes: ClassVar[int] = 2
    name: Literal["labelled"] = "labelled"
    samples: PositiveInt = 1024
    features: PositiveInt = 2048
    nonzeros: float = Field(1.0, gt=0, le=1, description="share of the entries that are not zero, drawn for each alone")
    scales: tuple[float, float] | None = Field(
        None,
        description="C1, C2: features have scales drawn from [0, 1], and those below C2 are multiplied by C1; null: 1",
    )
    unit_rows: bool = Field(False, description="scale every vector to length 1, as those of epsilon and RCV1 are")
    flipped: float = Field(0.0, ge=0, lt=0.5, description="share of the labels that are turned around")
    split_seed: NonNegativeInt = Field(0, description="draws everything")

    @property
    def channels(self) -> int:
        """Entries of a vector."""
        return self.features


class LibsvmConfig(Strict):
    """Vectors of two classes from a text file in LIBSVM's format, such as epsilon or RCV1; see docs/data.md."""

    kind: ClassVar[str] = "labelled vectors"
    classes: ClassVar[int] = 2
    name: Literal["libsvm"] = "libsvm"
    file: str = Field(description="below the folder of data; may be compressed by gzip or bzip2")
    test_file: str | None = Field(None, description="what is tested on; null: what is trained on")
    features: PositiveInt | None = Field(None, description="entries of a vector; null: the largest one in the file")


class GroupedConfig(Strict):
    """Labelled vectors in groups, equally large, whose classifiers differ: good on average is not good for all."""

    kind: ClassVar[str] = "grouped vectors"
    name: Literal["grouped"] = "grouped"
    groups: int = Field(4, ge=2)
    samples: PositiveInt = Field(1024, description="of all groups together: a multiple of their number")
    features: PositiveInt = 20
    spread: NonNegativeFloat = Field(1.0, description="how far the groups' classifiers are from the common one")
    split_seed: NonNegativeInt = Field(0, description="draws everything")

    @model_validator(mode="after")
    def _equally_large(self) -> "GroupedConfig":
        if self.samples % self.groups:
            raise ValueError(f"samples must be a multiple of groups, and {self.samples} is none of {self.groups}")
        return self

    @property
    def channels(self) -> int:
        """Entries of a vector."""
        return self.features

    @property
    def classes(self) -> int:
        """Groups, of which the model has a weight each."""
        return self.groups


class QuadraticsConfig(Strict):
    """A function a worker, quadratic in x and y, whose mean over workers has one saddle; without noise.

    f_p = x' A_p x / 2 + x' B_p y - y' C_p y / 2 + u_p' x - v_p' y, with diagonal A_p and C_p.
    """

    kind: ClassVar[str] = "saddles"
    name: Literal["quadratics"] = "quadratics"
    x: PositiveInt = Field(10, description="entries of x")
    y: PositiveInt = Field(10, description="entries of y")
    convexity: PositiveFloat = Field(1.0, description="of A and C, where workers do not differ")
    coupling: NonNegativeFloat = Field(
        1.0, description="size of B: 0 leaves two problems that have nothing to do with each other"
    )
    heterogeneity: NonNegativeFloat = Field(
        0.0, description="how much workers differ in all coefficients; 0: all have the same function"
    )
    iterations: PositiveInt = Field(100, description="of an epoch")
    split_seed: NonNegativeInt = Field(0, description="draws the functions")

    @property
    def channels(self) -> int:
        """Entries of x."""
        return self.x

    @property
    def classes(self) -> int:
        """Entries of y."""
        return self.y

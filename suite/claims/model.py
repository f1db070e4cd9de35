"""The form of replications/<paper>/claims.yaml."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Discriminator,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Tag,
    ValidationError,
    model_validator,
)

from suite.config.profiles import replication_folders, replications_of
from suite.config.strict import Strict
from suite.config.values import read_yaml, sentence
from suite.errors import ConfigError
from suite.words import network_name


class Bounds(Strict):
    """What every check has: a name, what the source says, and bounds for the value."""

    name: str
    expected: str = Field(description="what the source says, in words or numbers")
    low: float | None = None
    high: float | None = None
    scale: float = Field(1.0, description="factor from the measure's unit to `unit`")
    unit: str = ""
    beside: bool = Field(
        False,
        description="stands beside the deciding checks: on another network than the source's, or of too few runs",
    )
    profiles: tuple[str, ...] = Field((), description="profiles it is for; empty: all that judge the claim")

    @model_validator(mode="after")
    def _bounded(self) -> "Bounds":
        if self.low is None and self.high is None:
            raise ValueError(f"check '{self.name}' needs a bound: low, high or both")
        return self

    @property
    def required(self) -> str:
        """The bounds in words."""
        named = (("at least", self.low), ("at most", self.high))
        return " and ".join(f"{word} {bound:g}" for word, bound in named if bound is not None)


OF_RUNS = ("difference", "ratio", "value")  # measures of one number a run


class RunCheck(Bounds):
    """One number from the profile's training runs; one value a seed."""

    measure: Literal[
        "difference",
        "ratio",
        "value",
        "observed",
        "delta_share",
        "hidden_share",
        "time_to_goal",
        "iteration_ratio",
        "rate",
    ] = Field(
        description="difference or ratio of what `of` and `epoch` name of `method` and `against`, paired by seed; "
        "value: the same of `method` alone; observed: `statistic` of the `quantity` that `method` observed, less that "
        "of `against` where it is given; delta_share: share of the delta values of `method` that are at most 1; "
        "hidden_share: share of the traced iteration's exchange, all processes together, that back-propagation "
        "covers; time_to_goal: time that `against` trains "
        "until its test metric is as good as the goal over that of `method`, iterations counted by seed and taken to "
        "last what is predicted on `network`; iteration_ratio: predicted time of an iteration of `method` over that of "
        "`against` on `network`, a single value; rate: slope of log(mean squared norm of the full gradient) over "
        "log(iterations) of the runs METHOD-ITERATIONS, less that of `against` where it is given"
    )
    experiment: str
    method: str
    against: str | None = None
    of: Literal["final", "train_loss", "bytes_sent", "iterations"] = Field(
        "final", description="difference, ratio, value: the run's final test metric, or another of its numbers"
    )
    epoch: PositiveInt | None = Field(
        None, description="difference, ratio, value: the test metric after this epoch, not the final one"
    )
    quantity: str | None = Field(None, description="observed: its name in the run's observations")
    statistic: Literal["mean", "share_above_0"] = Field(
        "mean", description="observed: over iterations and segments; share_above_0: of the values, those above 0"
    )
    by: Literal["iteration", "epoch"] = Field(
        "iteration", description="delta_share: single values, or means over an epoch"
    )
    equivalence: PositiveFloat | None = Field(
        None,
        description="difference: test beside whether it lies within this of zero on both sides, in `unit`; the bounds "
        "decide",
    )
    network: str | None = Field(None, description="time_to_goal, iteration_ratio: its name in the table of run times")
    goal: str = Field("dense", description="time_to_goal: the method whose final metric, by seed, sets the goal")
    tolerance: NonNegativeFloat | None = Field(
        None,
        description="time_to_goal: what the goal is short of that metric, an accuracy by this many points over 100, a "
        "perplexity by this share",
    )

    @model_validator(mode="after")
    def _complete(self) -> "RunCheck":
        timed = self.measure in ("time_to_goal", "iteration_ratio")
        if (timed or self.measure in ("difference", "ratio")) and self.against is None:
            raise ValueError(f"check '{self.name}' compares two methods and needs 'against'")
        for name, wanted in (
            ("network", timed),
            ("tolerance", self.measure == "time_to_goal"),
            ("equivalence", None if self.measure == "difference" else False),
            ("epoch", None if self.measure in OF_RUNS else False),
            ("quantity", self.measure == "observed"),
            ("against", False if self.measure == "value" else None),
        ):
            if wanted is not None and (getattr(self, name) is not None) != wanted:
                raise ValueError(
                    f"check '{self.name}' measures {self.measure}, which {'needs' if wanted else 'has no use for'} "
                    f"'{name}'"
                )
        if self.of != "final" and (self.epoch is not None or self.measure not in OF_RUNS):
            raise ValueError(f"check '{self.name}' has no use for 'of'; leave it out")
        return self

    @property
    def evidence(self) -> str:
        """Where its values come from."""
        return "predicted" if self.measure == "iteration_ratio" else "runs"

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return f"{self.name}, {network_name(self.network)}" if self.network else self.name

    @property
    def neutral(self) -> float | None:
        """The value, in `unit`, of two methods that do not differ; None where nothing is compared."""
        return {"difference": 0.0, "ratio": self.scale, "time_to_goal": self.scale}.get(self.measure)


class TimeCheck(Bounds):
    """One number from the times of whole iterations on a network of hosts, over several models.

    Of emulated iterations there is one value an iteration, of predicted ones a single value.
    """

    evidence: Literal["emulated", "predicted"]
    measure: Literal["speedup", "saved", "pipelining_share", "hidden_share"] = Field(
        description="speedup: time of `against` over time of `method`; saved: 1 - `method` / `against`; "
        "pipelining_share: (SLGS / LAGS - 1) / (S_max - 1); hidden_share: share of the exchange of `method` that does "
        "not make its iteration longer than computation and selection"
    )
    network: str = Field(description="its name in the tables of iteration times")
    workers: PositiveInt = 16
    models: tuple[str, ...] = Field(min_length=1)
    over: Literal["lowest", "highest", "mean"] = Field(description="what of the models' values counts")
    method: str = "lags"
    against: str = "dense"
    communication: Literal["selection", "exchange"] = Field(
        "exchange", description="pipelining_share: the time of SLGS that S_max takes for communication"
    )
    relative_to: str | None = Field(None, description="a network whose value divides the one on `network`")

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return f"{self.name}, {network_name(self.network)}, {self.evidence}"


class PredictedCheck(Bounds):
    """Predicted time of an iteration of `against` over that of `method`, a single value.

    Of a published model with the layer times of its authors, on a named network, with whatever settings of methods.
    """

    model: str = Field(description="its name in the tables of iteration times")
    network: str = Field(description="a named network")
    workers: PositiveInt
    method: dict[str, Any] = Field(description="name and settings")
    against: dict[str, Any] = Field(description="name and settings")
    relative_to_workers: PositiveInt | None = Field(
        None, description="so many workers, whose value divides the one of `workers`"
    )
    evidence: ClassVar[str] = "predicted"

    @property
    def title(self) -> str:
        """What it is called in tables."""
        return f"{self.name}, {self.model}, {network_name(self.network)}, {self.workers} workers"


def _kind(check: Any) -> str:
    values = check if isinstance(check, dict) else vars(check)
    return "times" if "evidence" in values else "predicted" if "model" in values else "runs"


Check = Annotated[
    Annotated[RunCheck, Tag("runs")] | Annotated[TimeCheck, Tag("times")] | Annotated[PredictedCheck, Tag("predicted")],
    Discriminator(_kind),
]


class Claim(Strict):
    """A sentence of a source with the numbers that would confirm or refute it."""

    id: str
    text: str
    source: str
    judged_by: tuple[str, ...] = Field(description="profiles whose results can judge it")
    scope: dict[str, str] = Field({}, description="by profile: what stands in for what the source used")
    not_judged: str = Field("", description="why a profile that is not listed in judged_by cannot judge it")
    checks: tuple[Check, ...] = ()

    @model_validator(mode="after")
    def _decided(self) -> "Claim":
        for check in self.checks:
            if check.profiles and not set(check.profiles) & set(self.judged_by):
                raise ValueError(
                    f"check '{check.name}' is for profiles that do not judge claim '{self.id}' "
                    f"({', '.join(check.profiles)}); add one of them to judged_by"
                )
        for profile in self.judged_by if self.checks else ():
            if all(check.beside for check in self.checks_for(profile)):
                raise ValueError(
                    f"no check of claim '{self.id}' decides in profile '{profile}'; at least one has to decide"
                )
        return self

    def checks_for(self, profile: str) -> "tuple[Check, ...]":
        """The checks that a profile makes."""
        return tuple(check for check in self.checks if not check.profiles or profile in check.profiles)


class ClaimsFile(Strict):
    """The whole claims.yaml."""

    claims: tuple[Claim, ...]


def all_claims() -> dict[str, tuple[Claim, ...]]:
    """The claims of every replication below ./replications, by its name."""
    claims = {folder.name: read_claims(folder) for folder in replication_folders()}
    if not any(claims.values()):
        raise ConfigError("there is no replications/*/claims.yaml here; run from the root of the suite's checkout")
    return claims


def claims_of(profile: str) -> list[Claim]:
    """The claims of the replications that have this profile, whether or not it can judge them."""
    return [claim for folder in replications_of(profile) for claim in read_claims(folder)]


def read_claims(folder: Path) -> tuple[Claim, ...]:
    """The claims of one replication; none where it has no claims.yaml."""
    path = folder / "claims.yaml"
    if not path.exists():
        return ()
    try:
        claims = ClaimsFile.model_validate(read_yaml(path)).claims
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error)}") from error
    ids = [claim.id for claim in claims]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{path}: claim {next(i for i in ids if ids.count(i) > 1)} appears twice")
    return claims

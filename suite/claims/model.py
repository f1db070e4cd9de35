"""The form of replications/<paper>/claims.yaml."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from suite.config.profiles import replication_folders
from suite.config.strict import Strict
from suite.config.values import read_yaml, sentence
from suite.errors import ConfigError


class Check(Strict):
    """One number that decides over a claim.

    `held` when the confidence interval over seeds lies within [low, high], not held when it lies wholly outside,
    undecided otherwise.
    """

    name: str
    measure: Literal["difference", "ratio", "delta_share", "hidden_share"] = Field(
        description="difference or ratio of the final metric of `method` and `against`, paired by seed; delta_share: "
        "share of the delta values of `method` that are at most 1; hidden_share: share of the traced iteration's "
        "exchange, all processes together, that back-propagation covers"
    )
    experiment: str
    method: str
    against: str | None = None
    by: Literal["iteration", "epoch"] = Field(
        "iteration", description="delta_share: single values, or means over an epoch"
    )
    expected: str = Field(description="what the source says, in words or numbers")
    low: float | None = None
    high: float | None = None
    scale: float = Field(1.0, description="factor from the metric's unit to `unit`")
    unit: str = ""

    @model_validator(mode="after")
    def _complete(self) -> "Check":
        if self.measure in ("difference", "ratio") and self.against is None:
            raise ValueError(f"check '{self.name}' compares two methods and needs 'against'")
        if self.low is None and self.high is None:
            raise ValueError(f"check '{self.name}' needs a bound: low, high or both")
        return self


class Claim(Strict):
    """A sentence of a source with the numbers that would confirm or refute it."""

    id: str
    text: str
    source: str
    judged_by: tuple[str, ...] = Field(description="profiles whose runs can judge it")
    scope: dict[str, str] = Field({}, description="by profile: what stands in for what the source used")
    not_judged: str = Field("", description="why a profile that is not listed in judged_by cannot judge it")
    checks: tuple[Check, ...] = ()


class ClaimsFile(Strict):
    """The whole claims.yaml."""

    claims: tuple[Claim, ...]


def all_claims() -> list[Claim]:
    """The claims of every replication below ./replications."""
    claims = [claim for folder in replication_folders() for claim in read_claims(folder)]
    if not claims:
        raise ConfigError("there is no replications/*/claims.yaml here; run from the root of the suite's checkout")
    return claims


def read_claims(folder: Path) -> tuple[Claim, ...]:
    """The claims of one replication."""
    path = folder / "claims.yaml"
    try:
        claims = ClaimsFile.model_validate(read_yaml(path)).claims
    except ValidationError as error:
        raise ConfigError(f"{path}: {sentence(error)}") from error
    ids = [claim.id for claim in claims]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{path}: claim {next(i for i in ids if ids.count(i) > 1)} appears twice")
    return claims

"""Base class of every settings model: unknown keys are refused with the nearest known one."""

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


def nearest(word: str, known: Iterable[str]) -> str:
    """The hint that ends an "unknown ..." message: the nearest known word, or all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}"


class Strict(BaseModel):
    """A frozen settings model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(f"unknown key '{key}'; {nearest(key, cls.model_fields)}")
        return values

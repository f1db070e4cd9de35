"""What the sources claim, as data, and what the stored results say to it."""

from suite.claims.judge import judge_claims
from suite.claims.model import Claim, all_claims, claims_of, read_claims

__all__ = ["Claim", "all_claims", "claims_of", "judge_claims", "read_claims"]

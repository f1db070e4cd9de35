"""What several test files share."""

import os

import pytest


def require(tool: str, available: bool, reason: str) -> None:
    """Skips the test where the tool is missing, or fails it where SUITE_REQUIRE promises the tool, as .ci/run does."""
    if available:
        return
    if tool in os.environ.get("SUITE_REQUIRE", "").split():
        pytest.fail(reason)
    pytest.skip(reason)

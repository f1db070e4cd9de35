"""An option of the battery."""


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--write-methods", action="store_true", help="Bring docs/methods.md up to date with what the battery finds."
    )

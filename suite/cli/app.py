"""`suite`: the application, and how errors reach the user."""

import errno
import os
import sys
import traceback

import typer

from suite.cli import advise, bench, emulate, inspect, measure, plan, predict, results, times, train
from suite.errors import SuiteError

# What a command meets where it may not, or cannot, read or write; commands that know more say more themselves.
_OF_THE_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENOSPC, errno.EDQUOT)

app = typer.Typer(
    help="Train with dense and sparsified exchange, check the assumption behind LAGS-SGD, and judge what papers claim.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback()
def options(debug: bool = typer.Option(False, "--debug", help="Show Python's traceback when something fails.")) -> None:
    """Options of every command."""
    if debug:
        os.environ["SUITE_DEBUG"] = "1"


for module in (train, plan, predict, advise, inspect, measure, bench, emulate, times, results):
    module.register(app)


def main() -> None:
    """Run the command line; errors become one sentence and an exit code."""
    try:
        app()
    except SuiteError as error:
        if os.environ.get("SUITE_DEBUG"):
            traceback.print_exc()
        print(f"suite: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if os.environ.get("SUITE_DEBUG") or error.errno not in _OF_THE_PLACE:
            raise
        place = error.filename or "a file"
        print(f"suite: {place} cannot be used ({error.strerror}); choose another place, or mend it", file=sys.stderr)
        sys.exit(2)

"""The two kinds of failure a user sees: a wrong input (exit code 2) and a run that failed (exit code 1)."""


class SuiteError(Exception):
    """A run failed. The message is one sentence with the rule and the fix; the command line exits with 1."""

    exit_code = 1
    kind = "failed"  # what became of the run, as failure.json and the table of states call it


class ConfigError(SuiteError):
    """The input was wrong and nothing has started. The command line exits with 2."""

    exit_code = 2


class Diverged(SuiteError):
    """Too many iterations in a row had a gradient that was not finite."""

    kind = "diverged"


class Stalled(SuiteError):
    """Nothing moved for as long as `train.stall_limit` allows."""

    kind = "timed out"


class Interrupted(SuiteError):
    """A signal ended the run after its checkpoint was written. Exits with 128 + the signal's number."""

    kind = "stopped"
    promise = "the same command continues from it"

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number

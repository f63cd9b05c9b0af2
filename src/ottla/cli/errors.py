"""How a command ends: exit codes, and errors that are one line for the person who typed it."""

import enum
from collections.abc import Sequence


class ExitCode(enum.IntEnum):
    OK = 0
    FAILED = 1  # The operation was tried and did not succeed.
    USAGE = 2
    UNREACHABLE = 3  # No broker answered.
    INTERRUPTED = 130  # As a shell reports SIGINT.
    BROKEN_PIPE = 141  # As a shell reports SIGPIPE.


class CommandError(Exception):
    """Printed as `ottla: <message>` on stderr, without a traceback."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(CommandError):
    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.USAGE)


class ManyErrors(CommandError):
    """Several at once, each printed on a line of its own."""

    def __init__(self, messages: Sequence[str]) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages

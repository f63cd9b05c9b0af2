"""Errors of calls to a cluster.

Unreachable       no connection, a broken connection, or no response in time
BrokerError       a response with an error code
NotAuthenticated  client or broker failed to prove its identity
OffsetOutOfRange  an offset that the partition does not have, or no longer has
"""

from ottla.protocol.errors import ErrorCode


class WireError(Exception):
    """A call to the cluster failed."""

    may_pass = False  # Whether a retry may succeed.


class Unreachable(WireError):
    """No response; a retry, or another broker, may succeed."""

    may_pass = True

    def __init__(self, text: str, reason: object = None) -> None:
        super().__init__(text)
        self.reason = reason  # The socket's error, if any.


class NotAuthenticated(WireError):
    """Wrong user name or password, or an untrusted certificate; a retry does not help."""


class BrokerError(WireError):
    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(f"{what}: {code.name.replace('_', ' ')}")
        self.code = code

    @property
    def may_pass(self) -> bool:  # type: ignore[override]
        # The markers of the previous transaction are still being written.
        return self.code.retriable or self.code is ErrorCode.concurrent_transactions


class OffsetOutOfRange(BrokerError):
    """The offset was removed by retention or compaction, or was never written."""

    def __init__(self, what: str) -> None:
        super().__init__(ErrorCode.offset_out_of_range, what)


def error_of(code: ErrorCode, what: str, message: str | None = None) -> BrokerError | None:
    """`message` is the broker's explanation, if there is one."""
    if code is ErrorCode.none:
        return None
    return BrokerError(code, f"{what} ({message})" if message else what)


def validate_answer(code: ErrorCode, what: str, message: str | None = None) -> None:
    """Raises what `error_of` returns."""
    if (error := error_of(code, what, message)) is not None:
        raise error

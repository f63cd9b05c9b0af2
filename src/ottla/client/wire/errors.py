"""What goes wrong when a cluster is asked for something.

Unreachable       no connection, or it broke, or no answer in time
BrokerError       an answer that says no, by its error code
NotAuthenticated  one of the two sides is not who it should be
OffsetOutOfRange  an offset that the partition does not have, or not any more
"""

from ottla.protocol.errors import ErrorCode


class WireError(Exception):
    """The cluster did not do what it was asked to."""

    may_pass = False  # Whether it is worth trying again.


class Unreachable(WireError):
    """Nobody answers; somebody else or the same broker may, later."""

    may_pass = True

    def __init__(self, text: str, reason: object = None) -> None:
        super().__init__(text)
        self.reason = reason  # The error of the socket, if it was one.


class NotAuthenticated(WireError):
    """Wrong name or password, or a certificate that is not trusted; it stays so."""


class BrokerError(WireError):
    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(f"{what}: {code.name.replace('_', ' ')}")
        self.code = code

    @property
    def may_pass(self) -> bool:  # type: ignore[override]
        # The markers of the transaction before are still being written.
        return self.code.retriable or self.code is ErrorCode.concurrent_transactions


class OffsetOutOfRange(BrokerError):
    """The offset was removed by retention or compaction, or was never written."""

    def __init__(self, what: str) -> None:
        super().__init__(ErrorCode.offset_out_of_range, what)


def validate_answer(code: ErrorCode, what: str) -> None:
    if code is not ErrorCode.none:
        raise BrokerError(code, what)

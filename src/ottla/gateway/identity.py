"""Who sends a request: the one place where that is decided.

Nobody is asked for a name yet, so everyone is ANONYMOUS and the brokers see the gateway's own user.
Basic, Bearer and SQS signatures become the brokers' users here.
"""

from typing import Final, NamedTuple

from starlette.types import Scope


class Identity(NamedTuple):
    principal: str  # As the brokers call users.


ANONYMOUS: Final = Identity("User:ANONYMOUS")


def identify(scope: Scope) -> Identity:  # noqa: ARG001
    """Called once for each request, before its route."""
    return ANONYMOUS

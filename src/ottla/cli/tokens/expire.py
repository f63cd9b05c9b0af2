"""`ottla tokens expire`: nobody logs in with a delegation token any more."""

from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_line
from ottla.cli.tokens.calls import ask, find_token, in_hours


def expire(
    token: str,
    /,
    *,
    hours: float | None = None,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Expire a delegation token, now or later. Open connections stay open.

    Args:
        token: Id of the token.
        hours: Expire in this many hours instead of now.
    """
    with bootstrap_broker(connection) as broker:
        found = find_token(broker, token)
        request = ExpireDelegationTokenRequest(hmac=found.hmac, expiry_time_period=in_hours(hours))
        expired = ask(broker, request, token)
    print_line(f"token {token} expires at {expired.expiry_timestamp.isoformat()}")

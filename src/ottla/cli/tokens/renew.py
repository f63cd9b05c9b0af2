"""`ottla tokens renew`: a delegation token lives on."""

from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_line
from ottla.cli.tokens.calls import ask, find_token, in_hours


def renew(
    token: str,
    /,
    *,
    hours: float | None = None,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Renew a delegation token.

    Args:
        token: Id of the token.
        hours: Lifetime from now, in hours; at most delegation.token.expiry.time.ms.
    """
    with bootstrap_broker(connection) as broker:
        found = find_token(broker, token)
        request = RenewDelegationTokenRequest(hmac=found.hmac, renew_period=in_hours(hours))
        renewed = ask(broker, request, token)
    print_line(f"token {token} lives until {renewed.expiry_timestamp.isoformat()}")

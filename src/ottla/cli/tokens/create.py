"""`ottla tokens create`: a token to log in with instead of a password."""

from base64 import b64encode
from collections.abc import Sequence

from kio.schema.create_delegation_token.v3.request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_line
from ottla.cli.tokens.calls import ask, in_hours
from ottla.security.principal import USER


def create(
    *,
    owner: str | None = None,
    renewer: Sequence[str] = (),
    max_hours: float | None = None,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Create a delegation token and print the client settings, which are shown only once.

    Args:
        owner: User that the token logs in as; by default yourself. Others need permission.
        renewer: User who may renew and expire the token besides its owner.
        max_hours: Maximum lifetime of the token; at most delegation.token.max.lifetime.ms.
    """
    request = CreateDelegationTokenRequest(
        owner_principal_type=USER if owner else None,
        owner_principal_name=owner,
        renewers=tuple(
            CreatableRenewers(principal_type=USER, principal_name=name) for name in renewer
        ),
        max_lifetime=in_hours(max_hours),
    )
    with bootstrap_broker(connection) as broker:
        token = ask(broker, request, "token")
    password = b64encode(token.hmac).decode()
    expires = token.expiry_timestamp.isoformat(timespec="seconds")
    print_line(f"token {token.token_id} of {token.principal_name}, until {expires}")
    print_line("sasl.mechanism=SCRAM-SHA-512")
    print_line(
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token.token_id}" password="{password}" tokenauth="true";'
    )

"""`ottla tokens list`: the delegation tokens that you may see."""

from typing import Any

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson
from ottla.cli.tokens.calls import described_tokens, time_text

_COLUMNS = ("token", "owner", "requester", "renewers", "expires", "max")


def list_tokens(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """List delegation tokens, without what they log in with."""
    with bootstrap_broker(connection) as broker:
        tokens = described_tokens(broker)
    rows: list[dict[str, Any]] = [
        {
            "token": token.token_id,
            "owner": token.principal_name,
            "requester": token.token_requester_principal_name,
            "renewers": ",".join(renewer.principal_name for renewer in token.renewers),
            "expires": time_text(token.expiry_timestamp),
            "max": time_text(token.max_timestamp),
        }
        for token in sorted(tokens, key=lambda found: found.token_id)
    ]
    print_listing(_COLUMNS, rows, as_json=as_json)

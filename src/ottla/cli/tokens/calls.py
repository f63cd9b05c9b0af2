"""What the commands for delegation tokens ask a broker."""

from datetime import UTC, datetime, timedelta
from typing import Any

from kio.schema.describe_delegation_token.v3.request import DescribeDelegationTokenRequest
from kio.schema.describe_delegation_token.v3.response import DescribedDelegationToken
from kio.static.primitive import i64Timedelta

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.errors import CommandError
from ottla.protocol.errors import ErrorCode

_HINTS = {
    ErrorCode.delegation_token_auth_disabled: (
        "delegation tokens are off; set delegation.token.secret.key on every node"
    ),
    ErrorCode.delegation_token_request_not_allowed: (
        "tokens need a login by SASL or a certificate, not by a token"
    ),
}


def ask(broker: BrokerCall, request: Any, of: str) -> Any:
    response = broker.call(request)
    check(response.error_code, of, _HINTS.get(response.error_code))
    return response


def described_tokens(broker: BrokerCall) -> list[DescribedDelegationToken]:
    return list(ask(broker, DescribeDelegationTokenRequest(owners=None), "tokens").tokens)


def find_token(broker: BrokerCall, token_id: str) -> DescribedDelegationToken:
    for token in described_tokens(broker):
        if token.token_id == token_id:
            return token
    raise CommandError(f"there is no token {token_id} that you may see")


def in_hours(hours: float | None) -> i64Timedelta:
    """-1, the broker's default, if none are given."""
    period = timedelta(milliseconds=-1) if hours is None else timedelta(hours=hours)
    return i64Timedelta.parse(timedelta(milliseconds=period // timedelta(milliseconds=1)))


def time_text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")

"""Topics that the gateways of a cluster keep for themselves."""

from typing import Final

from ottla.client.wire.errors import BrokerError
from ottla.protocol.errors import ErrorCode

RESERVED_PREFIX: Final = "__gateway"


def validate_topic(name: str) -> None:
    """TOPIC_AUTHORIZATION_FAILED for a topic of the gateways: who reads it can forge handles."""
    if name.startswith(RESERVED_PREFIX):
        raise BrokerError(ErrorCode.topic_authorization_failed, f"topic {name}")

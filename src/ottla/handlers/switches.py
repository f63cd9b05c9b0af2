"""APIs that are answered only while their protocol is enabled, as in Kafka.

A protocol is enabled at level 1 of its feature (`ottla features`); consumer and streams groups can
also be omitted from `group.coordinator.rebalance.protocols`.
"""

from collections.abc import Collection
from typing import Final

from ottla.controller.features import (
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    feature_level,
)
from ottla.handlers.broker import Broker
from ottla.protocol.errors import ApiError, ErrorCode

_CONSUMER_GROUP_KEYS: Final = frozenset({68, 69})
_STREAMS_GROUP_KEYS: Final = frozenset({88, 89})
_SHARE_GROUP_KEYS: Final = frozenset({76, 77, 78, 79, 90, 91, 92})
_FEATURES: Final = {
    **dict.fromkeys(_CONSUMER_GROUP_KEYS, GROUP_VERSION),
    **dict.fromkeys(_SHARE_GROUP_KEYS, SHARE_VERSION),
    **dict.fromkeys(_STREAMS_GROUP_KEYS, STREAMS_VERSION),
}


def keys_off(protocols: Collection[str]) -> frozenset[int]:
    """The APIs of protocols that `group.coordinator.rebalance.protocols` omits."""
    keys = {"consumer": _CONSUMER_GROUP_KEYS, "streams": _STREAMS_GROUP_KEYS}
    return frozenset().union(*(keys[name] for name in keys.keys() - set(protocols)))


def validate_on(broker: Broker, api_key: int) -> None:
    """ApiError if the protocol of this API is disabled."""
    feature = _FEATURES.get(api_key)
    if feature is None:
        return
    if not feature_level(broker.image, feature):
        raise ApiError(ErrorCode.unsupported_version, f"{feature} is at level 0")
    if api_key in broker.settings.keys_off:
        raise ApiError(
            ErrorCode.unsupported_version,
            "group.coordinator.rebalance.protocols does not include this protocol",
        )

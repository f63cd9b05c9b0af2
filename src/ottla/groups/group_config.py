"""The keys that groups can set, and the constraints between them."""

from typing import Any

from ottla.groups.consumer import config as consumer
from ottla.groups.share import config as share
from ottla.groups.streams import config as streams
from ottla.protocol.config import ConfigKey, ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode

GROUP_KEYS: tuple[ConfigKey[Any], ...] = (
    *consumer.GROUP_KEYS,
    *share.GROUP_KEYS,
    *streams.GROUP_KEYS,
)

_BOUNDED_KEYS = (*consumer.BOUNDED_KEYS, *share.BOUNDED_KEYS, *streams.BOUNDED_KEYS)
_MEMBERSHIPS = (consumer.MEMBERSHIP, share.MEMBERSHIP, streams.MEMBERSHIP)


def validate_group(group: ConfigValues, broker: ConfigValues) -> None:
    """`group` has the values of group keys, falling back to the broker's synonyms."""
    for key in _BOUNDED_KEYS:
        key.validate(group, broker)
    for keys in _MEMBERSHIPS:
        session, heartbeat = keys.session_timeout_ms, keys.heartbeat_interval_ms
        _validate_session(session.group_key, heartbeat.group_key, group)
    count_key = streams.STREAMS_NUM_STANDBY_REPLICAS
    _validate_standbys(count_key, group[count_key], broker)


def validate_broker(broker: ConfigValues) -> None:
    for key in _BOUNDED_KEYS:
        key.validate_broker(broker)
    for keys in _MEMBERSHIPS:
        session, heartbeat = keys.session_timeout_ms, keys.heartbeat_interval_ms
        _validate_session(session.broker_key, heartbeat.broker_key, broker)
    count_key = streams.GROUP_STREAMS_NUM_STANDBY_REPLICAS
    _validate_standbys(count_key, broker[count_key], broker)


def _validate_session(
    timeout: ConfigKey[int], heartbeat_interval: ConfigKey[int], values: ConfigValues
) -> None:
    if values[timeout] <= values[heartbeat_interval]:
        raise ApiError(
            ErrorCode.invalid_config,
            f"{timeout.name} must be greater than {heartbeat_interval.name}",
        )


def _validate_standbys(key: ConfigKey[int], count: int, broker: ConfigValues) -> None:
    most = streams.GROUP_STREAMS_MAX_STANDBY_REPLICAS
    if count > broker[most]:
        raise ApiError(
            ErrorCode.invalid_config, f"{key.name} must be less than or equal to {most.name}"
        )

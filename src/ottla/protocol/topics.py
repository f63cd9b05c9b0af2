"""Names of topics and partitions."""

import re
from typing import NamedTuple
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode

TOPIC_NAME_LENGTH_MAX = 249
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
CLUSTER_METADATA_TOPIC_ID = UUID(int=1)
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset(
    {CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def validate_topic_name(name: str) -> None:
    """Kafka's rule: 1 to 249 of the characters a-z A-Z 0-9 . _ -, and neither `.` nor `..`."""
    if not name:
        raise ApiError(ErrorCode.invalid_topic_exception, "the topic name is empty")
    if name in {".", ".."}:
        raise ApiError(ErrorCode.invalid_topic_exception, f"a topic cannot be named {name!r}")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise ApiError(
            ErrorCode.invalid_topic_exception,
            f"the topic name has {len(name)} characters, more than {TOPIC_NAME_LENGTH_MAX}",
        )
    if not _TOPIC_NAME.fullmatch(name):
        raise ApiError(
            ErrorCode.invalid_topic_exception,
            f"the topic name {name!r} has a character other than a-z, A-Z, 0-9, '.', '_' and '-'",
        )


def is_topic_name(name: str) -> bool:
    try:
        validate_topic_name(name)
    except ApiError:
        return False
    return True


def collision_key(name: str) -> str:
    """Two topics with the same key would share metric names, so only one of them may exist."""
    return name.replace(".", "_")

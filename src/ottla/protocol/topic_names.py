"""The rules for topic names, and the only topic id that is fixed."""

import re
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode

CLUSTER_METADATA_TOPIC_ID = UUID(int=1)

TOPIC_NAME_LENGTH_MAX = 249
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")


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

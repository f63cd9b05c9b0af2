"""DeliveryAcknowledge: an API of Ottla's own, in the style of kio's entities.

The outcome of share group deliveries, reported by anyone who knows it: without a session, and not
necessarily by the member that fetched them. A delivery is identified by its offset, its count and
its holder.
"""

import enum
import uuid
from dataclasses import field
from typing import ClassVar, Final

from kio.schema.types import GroupId
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from ottla.protocol.entities import entity, wire
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.own_api import OwnRequest, OwnResponse

API_KEY: Final = i16(10_000)
LOCK_MS_MAX: Final = 12 * 3_600_000
DELAY_MS_MAX: Final = 366 * 24 * 3_600_000
POLICY_DELAY: Final = -1  # Use the group's back-off policy.


class DeliveryAcknowledgeType(enum.IntEnum):
    """The first four are those of ShareAcknowledge."""

    ACCEPT = 1
    RELEASE = 2  # Not delivered again before `delay_ms`.
    REJECT = 3
    RENEW = 4  # Held for `lock_ms` from now, whatever happens to the member that fetched it.
    PUT_BACK = 5  # No consumer has seen it: available at once, and the delivery does not count.
    SKIP = 6  # All up to `last_offset` is done, whoever has it; only that offset counts.


@entity
class Delivery(OwnRequest):
    first_offset: i64 = field(metadata=wire("int64"))
    last_offset: i64 = field(metadata=wire("int64"))
    holder: str = field(metadata=wire("string"))
    delivery_count: i16 = field(metadata=wire("int16"))
    type: i8 = field(metadata=wire("int8"))
    delay_ms: i64 = field(metadata=wire("int64"), default=i64(POLICY_DELAY))
    lock_ms: i64 = field(metadata=wire("int64"), default=i64(0))


@entity
class AcknowledgedPartition(OwnRequest):
    partition_index: i32 = field(metadata=wire("int32"))
    deliveries: tuple[Delivery, ...]


@entity
class AcknowledgedTopic(OwnRequest):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[AcknowledgedPartition, ...]


@entity
class AcknowledgedGroup(OwnRequest):
    group_id: GroupId = field(metadata=wire("string"))
    topics: tuple[AcknowledgedTopic, ...]


@entity
class DeliveryAcknowledgeRequest(OwnRequest):
    __api_key__: ClassVar[i16] = API_KEY
    groups: tuple[AcknowledgedGroup, ...]


@entity
class DeliveryResult(OwnResponse):
    error_code: ErrorCode = field(metadata=wire("error_code"))
    error_message: str | None = field(metadata=wire("string"), default=None)


@entity
class PartitionResult(OwnResponse):
    partition_index: i32 = field(metadata=wire("int32"))
    error_code: ErrorCode = field(metadata=wire("error_code"))
    error_message: str | None = field(metadata=wire("string"), default=None)
    deliveries: tuple[DeliveryResult, ...]  # In request order; empty with an error.


@entity
class TopicResult(OwnResponse):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[PartitionResult, ...]


@entity
class GroupResult(OwnResponse):
    group_id: GroupId = field(metadata=wire("string"))
    topics: tuple[TopicResult, ...]


@entity
class DeliveryAcknowledgeResponse(OwnResponse):
    __api_key__: ClassVar[i16] = API_KEY
    throttle_time: i32Timedelta = field(metadata=wire("timedelta_i32"))
    groups: tuple[GroupResult, ...]

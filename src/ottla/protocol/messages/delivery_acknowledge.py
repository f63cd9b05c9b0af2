"""DeliveryAcknowledge: an API of Ottla's own, in the manner of kio's entities.

What became of deliveries of a share group, said by whoever knows of them: no session, and not by
the member that fetched them. A delivery is named by its offset, its count and its holder.
"""

import enum
import uuid
from dataclasses import field
from typing import ClassVar, Final

from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import GroupId
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

from ottla.protocol.entities import entity
from ottla.protocol.errors import ErrorCode

API_KEY: Final = i16(10_000)  # Kafka counts its own from 0.
LOCK_MS_MAX: Final = 12 * 3_600_000
DELAY_MS_MAX: Final = 366 * 24 * 3_600_000
POLICY_DELAY: Final = -1  # What the group's back-off policy says.


class DeliveryAcknowledgeType(enum.IntEnum):
    """The first four are those of ShareAcknowledge."""

    ACCEPT = 1
    RELEASE = 2  # Not delivered again before `delay_ms`.
    REJECT = 3
    RENEW = 4  # Held for `lock_ms` from now, whatever becomes of the member that fetched it.
    PUT_BACK = 5  # No consumer has seen it: available at once, and the delivery does not count.
    SKIP = 6  # All up to `last_offset` is done, whoever has it; only that offset counts.


class _Request:
    __slots__ = ()
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = API_KEY
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


class _Response:
    __slots__ = ()
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = API_KEY
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


@entity
class Delivery(_Request):
    first_offset: i64 = field(metadata={"kafka_type": "int64"})
    last_offset: i64 = field(metadata={"kafka_type": "int64"})
    holder: str = field(metadata={"kafka_type": "string"})
    delivery_count: i16 = field(metadata={"kafka_type": "int16"})
    type: i8 = field(metadata={"kafka_type": "int8"})
    delay_ms: i64 = field(metadata={"kafka_type": "int64"}, default=i64(POLICY_DELAY))
    lock_ms: i64 = field(metadata={"kafka_type": "int64"}, default=i64(0))


@entity
class AcknowledgedPartition(_Request):
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    deliveries: tuple[Delivery, ...]


@entity
class AcknowledgedTopic(_Request):
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[AcknowledgedPartition, ...]


@entity
class AcknowledgedGroup(_Request):
    group_id: GroupId = field(metadata={"kafka_type": "string"})
    topics: tuple[AcknowledgedTopic, ...]


@entity
class DeliveryAcknowledgeRequest(_Request):
    __type__: ClassVar = EntityType.request
    groups: tuple[AcknowledgedGroup, ...]


@entity
class DeliveryResult(_Response):
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)


@entity
class PartitionResult(_Response):
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    deliveries: tuple[DeliveryResult, ...]  # As in the request; none with an error.


@entity
class TopicResult(_Response):
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[PartitionResult, ...]


@entity
class GroupResult(_Response):
    group_id: GroupId = field(metadata={"kafka_type": "string"})
    topics: tuple[TopicResult, ...]


@entity
class DeliveryAcknowledgeResponse(_Response):
    __type__: ClassVar = EntityType.response
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    groups: tuple[GroupResult, ...]

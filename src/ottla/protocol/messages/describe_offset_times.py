"""DescribeOffsetTimes: an API of Ottla's own, in the manner of kio's entities.

How far partitions are committed, and when the first records from given offsets on were written. A
coordinator asks leaders, to tell how far its groups are behind.
"""

import uuid
from dataclasses import field
from typing import ClassVar, Final

from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64

from ottla.protocol.entities import entity
from ottla.protocol.errors import ErrorCode

API_KEY: Final = i16(10_001)  # Kafka counts its own from 0.


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
class AskedPartition(_Request):
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    offsets: tuple[i64, ...] = field(metadata={"kafka_type": "int64"}, default=())


@entity
class AskedTopic(_Request):
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[AskedPartition, ...]


@entity
class DescribeOffsetTimesRequest(_Request):
    __type__: ClassVar = EntityType.request
    topics: tuple[AskedTopic, ...]


@entity
class PartitionTimes(_Response):
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    high_watermark: i64 = field(metadata={"kafka_type": "int64"}, default=i64(-1))
    # As in the request: of the first record from the offset on, -1 if there is none or it has none.
    timestamps: tuple[i64, ...] = field(metadata={"kafka_type": "int64"}, default=())


@entity
class TopicTimes(_Response):
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[PartitionTimes, ...]


@entity
class DescribeOffsetTimesResponse(_Response):
    __type__: ClassVar = EntityType.response
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    topics: tuple[TopicTimes, ...]

"""DescribeOffsetTimes: an API of Ottla's own, in the style of kio's entities.

The high watermarks of partitions, and when the first records from given offsets on were written. A
coordinator asks leaders, to determine the lag of its groups.
"""

import uuid
from dataclasses import field
from typing import ClassVar, Final

from kio.static.primitive import i16, i32, i32Timedelta, i64

from ottla.protocol.entities import entity, wire
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.own_api import OwnRequest, OwnResponse

API_KEY: Final = i16(10_001)


@entity
class AskedPartition(OwnRequest):
    partition_index: i32 = field(metadata=wire("int32"))
    offsets: tuple[i64, ...] = field(metadata=wire("int64"), default=())


@entity
class AskedTopic(OwnRequest):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[AskedPartition, ...]


@entity
class DescribeOffsetTimesRequest(OwnRequest):
    __api_key__: ClassVar[i16] = API_KEY
    topics: tuple[AskedTopic, ...]


@entity
class PartitionTimes(OwnResponse):
    partition_index: i32 = field(metadata=wire("int32"))
    error_code: ErrorCode = field(metadata=wire("error_code"))
    high_watermark: i64 = field(metadata=wire("int64"), default=i64(-1))
    # In request order: of the first record from the offset on, -1 if there is none or it has none.
    timestamps: tuple[i64, ...] = field(metadata=wire("int64"), default=())


@entity
class TopicTimes(OwnResponse):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[PartitionTimes, ...]


@entity
class DescribeOffsetTimesResponse(OwnResponse):
    __api_key__: ClassVar[i16] = API_KEY
    throttle_time: i32Timedelta = field(metadata=wire("timedelta_i32"))
    topics: tuple[TopicTimes, ...]

"""ImportRecords: an API of Ottla's own, in the style of kio's entities.

Record batches from another cluster, or an earlier state of this one, which keep their offsets.
"""

import uuid
from dataclasses import field
from typing import ClassVar, Final

from kio.static.primitive import i16, i32, i32Timedelta, i64

from ottla.protocol.entities import entity, wire
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.own_api import OwnRequest, OwnResponse

API_KEY: Final = i16(10_002)


@entity
class ImportedPartition(OwnRequest):
    partition_index: i32 = field(metadata=wire("int32"))
    # Where the log begins, if it is empty; otherwise ignored.
    log_start_offset: i64 = field(metadata=wire("int64"))
    # Where the log ends; if it ends elsewhere, nothing is appended.
    next_offset: i64 = field(metadata=wire("int64"))
    records: bytes = field(metadata=wire("records"))


@entity
class ImportedTopic(OwnRequest):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[ImportedPartition, ...]


@entity
class ImportRecordsRequest(OwnRequest):
    __api_key__: ClassVar[i16] = API_KEY
    timeout: i32Timedelta = field(metadata=wire("timedelta_i32"))
    topics: tuple[ImportedTopic, ...]


@entity
class PartitionResult(OwnResponse):
    partition_index: i32 = field(metadata=wire("int32"))
    error_code: ErrorCode = field(metadata=wire("error_code"))
    error_message: str | None = field(metadata=wire("string"), default=None)
    # The current offsets, if the responding broker leads the partition.
    log_start_offset: i64 = field(metadata=wire("int64"), default=i64(-1))
    log_end_offset: i64 = field(metadata=wire("int64"), default=i64(-1))


@entity
class TopicResult(OwnResponse):
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    partitions: tuple[PartitionResult, ...]


@entity
class ImportRecordsResponse(OwnResponse):
    __api_key__: ClassVar[i16] = API_KEY
    throttle_time: i32Timedelta = field(metadata=wire("timedelta_i32"))
    topics: tuple[TopicResult, ...]

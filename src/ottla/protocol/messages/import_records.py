"""ImportRecords: an API of Ottla's own, in the manner of kio's entities.

Record batches of another cluster, or of another time of this one, which keep their offsets.
"""

import uuid
from dataclasses import field
from typing import ClassVar, Final

from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64

from ottla.protocol.errors import ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

API_KEY: Final = i16(10_002)  # Kafka counts its own from 0.


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPartition(_Request):
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    # Where the log begins, if it is empty; else it is not looked at.
    log_start_offset: i64 = field(metadata={"kafka_type": "int64"})
    # Where the log ends; if it ends elsewhere, nothing is appended.
    next_offset: i64 = field(metadata={"kafka_type": "int64"})
    records: bytes = field(metadata={"kafka_type": "records"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTopic(_Request):
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[ImportedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecordsRequest(_Request):
    __type__: ClassVar = EntityType.request
    timeout: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    topics: tuple[ImportedTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult(_Response):
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    # As they are now, if the partition is led by who answers.
    log_start_offset: i64 = field(metadata={"kafka_type": "int64"}, default=i64(-1))
    log_end_offset: i64 = field(metadata={"kafka_type": "int64"}, default=i64(-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult(_Response):
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecordsResponse(_Response):
    __type__: ClassVar = EntityType.response
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    topics: tuple[TopicResult, ...]

"""DescribeLogDirs: what is damaged in the logs of a broker, in one field more than Kafka's.

Clients skip tagged fields that they do not know.
"""

from dataclasses import field
from typing import ClassVar

from kio.schema.describe_log_dirs.v5 import response as describe_log_dirs_response
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i64

from ottla.protocol.entities import entity

_DAMAGE_TAG = 10_000  # Kafka counts its own from 0.

WHOLE_LOG = i64(-1)


@entity
class DamagedOffsets:
    """What this broker cannot serve of a replica until it is repaired."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(5)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(35)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    first_offset: i64 = field(metadata={"kafka_type": "int64"})  # Or WHOLE_LOG, and so the next.
    last_offset: i64 = field(metadata={"kafka_type": "int64"})


@entity
class DescribeLogDirsResponse(describe_log_dirs_response.DescribeLogDirsResponse):
    damage: tuple[DamagedOffsets, ...] = field(metadata={"tag": _DAMAGE_TAG}, default=())

"""DescribeLogDirs: damage in a broker's logs, in one field more than Kafka's.

Clients skip tagged fields that they do not know.
"""

from dataclasses import field
from typing import ClassVar

from kio.schema.describe_log_dirs.v5 import response as describe_log_dirs_response
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i64

from ottla.protocol.entities import entity, wire

_DAMAGE_TAG = 10_000  # Kafka counts its own from 0.

WHOLE_LOG = i64(-1)


@entity
class DamagedOffsets:
    """The part of a replica that this broker cannot serve until it is repaired."""

    __version__: ClassVar[i16] = i16(5)
    __flexible__: ClassVar[bool] = True
    topic: TopicName = field(metadata=wire("string"))
    partition_index: i32 = field(metadata=wire("int32"))
    first_offset: i64 = field(metadata=wire("int64"))  # Or WHOLE_LOG, as is the next.
    last_offset: i64 = field(metadata=wire("int64"))


@entity
class DescribeLogDirsResponse(describe_log_dirs_response.DescribeLogDirsResponse):
    damage: tuple[DamagedOffsets, ...] = field(metadata={"tag": _DAMAGE_TAG}, default=())

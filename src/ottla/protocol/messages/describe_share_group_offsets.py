"""DescribeShareGroupOffsets: one field more than Kafka's, for held and delayed records."""

from dataclasses import field

from kio.schema.describe_share_group_offsets.v1 import response as offsets_response
from kio.static.primitive import i64

from ottla.protocol.entities import entity, wire

_PARKED_COUNT_TAG = 10_000  # Kafka counts its own from 0.


@entity
class DescribeShareGroupOffsetsResponsePartition(
    offsets_response.DescribeShareGroupOffsetsResponsePartition
):
    # Held by consumers, or not due yet. They may be before the start offset.
    parked_count: i64 = field(metadata=wire("int64", tag=_PARKED_COUNT_TAG), default=i64(0))


@entity
class DescribeShareGroupOffsetsResponseTopic(
    offsets_response.DescribeShareGroupOffsetsResponseTopic
):
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...]


@entity
class DescribeShareGroupOffsetsResponseGroup(
    offsets_response.DescribeShareGroupOffsetsResponseGroup
):
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...]


@entity
class DescribeShareGroupOffsetsResponse(offsets_response.DescribeShareGroupOffsetsResponse):
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...]

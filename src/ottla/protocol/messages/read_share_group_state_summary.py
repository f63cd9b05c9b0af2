"""ReadShareGroupStateSummary: one field more than Kafka's, for parked records."""

from dataclasses import field

from kio.schema.read_share_group_state_summary.v1 import response as summary_response
from kio.static.primitive import i64

from ottla.protocol.entities import entity, wire

_PARKED_COUNT_TAG = 10_000  # Kafka counts its own from 0.


@entity
class PartitionResult(summary_response.PartitionResult):
    parked_count: i64 = field(metadata=wire("int64", tag=_PARKED_COUNT_TAG), default=i64(0))


@entity
class ReadStateSummaryResult(summary_response.ReadStateSummaryResult):
    partitions: tuple[PartitionResult, ...]


@entity
class ReadShareGroupStateSummaryResponse(summary_response.ReadShareGroupStateSummaryResponse):
    results: tuple[ReadStateSummaryResult, ...]

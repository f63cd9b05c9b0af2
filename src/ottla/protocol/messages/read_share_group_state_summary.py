"""ReadShareGroupStateSummary: one field more than Kafka's, of records that are parked."""

from dataclasses import dataclass, field

from kio.schema.read_share_group_state_summary.v1 import response as summary_response
from kio.static.primitive import i64

_PARKED_COUNT_TAG = 10_000  # Kafka counts its own from 0.


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult(summary_response.PartitionResult):
    parked_count: i64 = field(
        metadata={"kafka_type": "int64", "tag": _PARKED_COUNT_TAG}, default=i64(0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStateSummaryResult(summary_response.ReadStateSummaryResult):
    partitions: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadShareGroupStateSummaryResponse(summary_response.ReadShareGroupStateSummaryResponse):
    results: tuple[ReadStateSummaryResult, ...]

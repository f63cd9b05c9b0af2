"""WriteShareGroupState: one field more than Kafka's, of records that are parked."""

from dataclasses import dataclass, field

from kio.schema.write_share_group_state.v1 import request as write_request

_PARKED_TAG = 10_000  # Kafka counts its own from 0.


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionData(write_request.PartitionData):
    # A change, in the layout of the records of `__share_group_state`; empty for none.
    parked: bytes = field(metadata={"kafka_type": "bytes", "tag": _PARKED_TAG}, default=b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStateData(write_request.WriteStateData):
    partitions: tuple[PartitionData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteShareGroupStateRequest(write_request.WriteShareGroupStateRequest):
    topics: tuple[WriteStateData, ...]

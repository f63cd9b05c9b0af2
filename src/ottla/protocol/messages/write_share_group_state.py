"""WriteShareGroupState: also has parked records, and a count of the writes."""

from dataclasses import field

from kio.schema.write_share_group_state.v1 import request as write_request
from kio.static.primitive import i64

from ottla.protocol.entities import entity, wire

_PARKED_TAG = 10_000  # Kafka counts its own from 0.
_WRITER_TAG = 10_001
_SEQUENCE_TAG = 10_002


@entity
class PartitionData(write_request.PartitionData):
    # A change, in the layout of the records of `__share_group_state`; empty for none.
    parked: bytes = field(metadata=wire("bytes", tag=_PARKED_TAG), default=b"")
    # As announced when it read the state; 0 for a leader that does not count its writes.
    writer: i64 = field(metadata=wire("int64", tag=_WRITER_TAG), default=i64(0))
    sequence: i64 = field(metadata=wire("int64", tag=_SEQUENCE_TAG), default=i64(0))


@entity
class WriteStateData(write_request.WriteStateData):
    partitions: tuple[PartitionData, ...]


@entity
class WriteShareGroupStateRequest(write_request.WriteShareGroupStateRequest):
    topics: tuple[WriteStateData, ...]

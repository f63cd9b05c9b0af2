"""ReadShareGroupState: also returns the parked records, and names the future writer."""

from dataclasses import field

from kio.schema.read_share_group_state.v0 import request as read_request
from kio.schema.read_share_group_state.v0 import response as read_response
from kio.static.primitive import i64

from ottla.protocol.entities import entity, wire

_PARKED_FROM_TAG = 10_000  # Kafka counts its own from 0.
_WRITER_TAG = 10_001
_PARKED_COUNT_TAG = 10_000
_PARKED_TAG = 10_001

NO_PAGE = -1


@entity
class RequestedPartition(read_request.PartitionData):
    # Requests the page of parked records that begins here.
    parked_from: i64 = field(metadata=wire("int64", tag=_PARKED_FROM_TAG), default=i64(NO_PAGE))

    # The number with which the reader will write; 0 if it will not.
    writer: i64 = field(metadata=wire("int64", tag=_WRITER_TAG), default=i64(0))


@entity
class ReadStateData(read_request.ReadStateData):
    partitions: tuple[RequestedPartition, ...]


@entity
class ReadShareGroupStateRequest(read_request.ReadShareGroupStateRequest):
    topics: tuple[ReadStateData, ...]


@entity
class PartitionResult(read_response.PartitionResult):
    parked_count: i64 = field(metadata=wire("int64", tag=_PARKED_COUNT_TAG), default=i64(0))
    # The page, in the layout of the records of `__share_group_state`.
    parked: bytes = field(metadata=wire("bytes", tag=_PARKED_TAG), default=b"")


@entity
class ReadStateResult(read_response.ReadStateResult):
    partitions: tuple[PartitionResult, ...]


@entity
class ReadShareGroupStateResponse(read_response.ReadShareGroupStateResponse):
    results: tuple[ReadStateResult, ...]

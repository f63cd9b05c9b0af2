"""WriteShareGroupState (85): v0-v1.

The leader of a share-partition writes changes of its state. Where batches overlap, the later one in
the request wins.

v1  how many records after the start offset are done (KIP-1226);
    what changed of parked records, and which of its leader's writes this is, in tagged fields of
    Ottla's own
"""

from collections.abc import Awaitable

from kio.schema.write_share_group_state.v1.request import StateBatch as WrittenBatch
from kio.schema.write_share_group_state.v1.response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.parked import NO_CHANGE, ParkedChange
from ottla.groups.share.state_batches import combined
from ottla.groups.share.state_coordinator import SharePartitionKey, StateWrite
from ottla.handlers.broker import Broker
from ottla.handlers.share_state_calls import StateApi, only_error
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.write_share_group_state import PartitionData


def _write(broker: Broker, key: SharePartitionKey, data: PartitionData) -> Awaitable[None]:
    write = StateWrite(
        data.state_epoch,
        data.leader_epoch,
        data.start_offset,
        combined(map(_batch, data.state_batches)),
        data.delivery_complete_count,
        _parked(data.parked),
        data.writer,
        data.sequence,
    )
    return broker.share.coordinator.write(key, write)


def _parked(data: bytes) -> ParkedChange:
    try:
        return ParkedChange.decode(data) if data else NO_CHANGE
    except ValueError as error:
        raise ApiError(ErrorCode.invalid_request, str(error)) from None


def _batch(written: WrittenBatch) -> StateBatch:
    try:
        state = DeliveryState(written.delivery_state)
    except ValueError:
        raise ApiError(
            ErrorCode.invalid_request, f"{written.delivery_state} is not a delivery state"
        ) from None
    if not 0 <= written.first_offset <= written.last_offset or written.delivery_count < 0:
        raise ApiError(ErrorCode.invalid_request, f"{written} makes no sense")
    return StateBatch(
        written.first_offset, written.last_offset, state.written, written.delivery_count
    )


_API = StateApi(_write, WriteShareGroupStateResponse, WriteStateResult, only_error(PartitionResult))
handle, error_response = _API.handle, _API.error_response

"""ReadShareGroupState (84): v0.

A new leader of a share-partition gets its state; older leaders are rejected from then on. Parked
records come in pages, in Ottla's own tagged fields.
"""

from collections.abc import Awaitable

from kio.schema.read_share_group_state.v0.response import StateBatch
from kio.static.primitive import i8, i16, i32, i64

from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareState
from ottla.handlers.broker import Broker
from ottla.handlers.share_state_calls import Outcome, StateApi
from ottla.protocol.messages.read_share_group_state import (
    NO_PAGE,
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    RequestedPartition,
)

_NO_STATE = ShareState(start_offset=0)  # Alongside an error.


def _read(
    broker: Broker, key: SharePartitionKey, data: RequestedPartition
) -> Awaitable[ShareState | ParkedChange]:
    if data.parked_from != NO_PAGE:
        return broker.share.coordinator.read_parked(key, data.leader_epoch, data.parked_from)
    return broker.share.coordinator.read(key, data.leader_epoch, data.writer)


def _partition(outcome: Outcome) -> PartitionResult:
    page = outcome.value if isinstance(outcome.value, ParkedChange) else None
    state = _NO_STATE if page is not None else outcome.value or _NO_STATE
    return PartitionResult(
        partition=outcome.partition,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        state_epoch=i32(state.state_epoch),
        start_offset=i64(state.start_offset),
        state_batches=tuple(
            StateBatch(
                first_offset=i64(batch.first_offset),
                last_offset=i64(batch.last_offset),
                delivery_state=i8(batch.state),
                delivery_count=i16(batch.delivery_count),
            )
            for batch in state.batches
        ),
        parked_count=i64(state.parked_count),
        parked=b"" if page is None else page.encode(),
    )


_API = StateApi(_read, ReadShareGroupStateResponse, ReadStateResult, _partition)
handle, error_response = _API.handle, _API.error_response

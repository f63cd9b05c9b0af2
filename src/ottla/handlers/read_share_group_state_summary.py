"""ReadShareGroupStateSummary (87): v0-v1.

A share group's coordinator asks for the group's progress in share-partitions. A broker that does
not coordinate one is asked by its coordinator when dead letters wait there (`waiting_letters`).

v1  how many records after the start offset are done (KIP-1226)
"""

from collections.abc import Awaitable

from kio.schema.read_share_group_state_summary.v1.request import PartitionData
from kio.static.primitive import i32, i64

from ottla.groups.share.state_coordinator import SharePartitionKey, ShareState
from ottla.handlers.broker import Broker
from ottla.handlers.share_state_calls import Outcome, StateApi
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

_NO_STATE = ShareState()  # Alongside an error.


def _read(broker: Broker, key: SharePartitionKey, _: PartitionData) -> Awaitable[ShareState]:
    try:
        return broker.share.coordinator.read_summary(key)
    except ApiError as error:
        if error.code is ErrorCode.not_coordinator:
            broker.share.waiting_letters.on_reminder(key)
        raise


def _partition(outcome: Outcome) -> PartitionResult:
    state = outcome.value or _NO_STATE
    return PartitionResult(
        partition=outcome.partition,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
        state_epoch=i32(state.state_epoch),
        leader_epoch=i32(max(0, state.leader_epoch)),
        start_offset=i64(state.start_offset),
        delivery_complete_count=i32(state.delivery_complete_count),
        parked_count=i64(state.parked_count),
    )


_API = StateApi(_read, ReadShareGroupStateSummaryResponse, ReadStateSummaryResult, _partition)
handle, error_response = _API.handle, _API.error_response

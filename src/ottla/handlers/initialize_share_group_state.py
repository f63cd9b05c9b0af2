"""InitializeShareGroupState (83): v0.

The coordinator of a share group creates or resets the state of share-partitions.
"""

from collections.abc import Awaitable

from kio.schema.initialize_share_group_state.v0.request import (
    InitializeShareGroupStateRequest,
    PartitionData,
)
from kio.schema.initialize_share_group_state.v0.response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.share_state_calls import StateAnswers, only_error

_ANSWERS = StateAnswers(
    InitializeShareGroupStateResponse, InitializeStateResult, only_error(PartitionResult)
)


def handle(
    broker: Broker, _: RequestContext, request: InitializeShareGroupStateRequest
) -> Awaitable[InitializeShareGroupStateResponse]:
    def begin(key: SharePartitionKey, data: PartitionData) -> Awaitable[None]:
        return broker.share.coordinator.initialize(key, data.state_epoch, data.start_offset)

    return _ANSWERS.answer(request, begin)


error_response = _ANSWERS.refuse

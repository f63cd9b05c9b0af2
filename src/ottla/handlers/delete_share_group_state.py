"""DeleteShareGroupState (86): v0.

The coordinator of a share group deletes the state of share-partitions.
"""

from collections.abc import Awaitable

from kio.schema.delete_share_group_state.v0.request import (
    DeleteShareGroupStateRequest,
    PartitionData,
)
from kio.schema.delete_share_group_state.v0.response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.share_state_calls import StateAnswers, only_error, validate_exists

_ANSWERS = StateAnswers(
    DeleteShareGroupStateResponse, DeleteStateResult, only_error(PartitionResult)
)


def handle(
    broker: Broker, _: RequestContext, request: DeleteShareGroupStateRequest
) -> Awaitable[DeleteShareGroupStateResponse]:
    def begin(key: SharePartitionKey, _: PartitionData) -> Awaitable[None]:
        validate_exists(broker, key)
        return broker.share.coordinator.delete(key)

    return _ANSWERS.answer(request, begin)


error_response = _ANSWERS.refuse

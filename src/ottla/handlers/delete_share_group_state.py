"""DeleteShareGroupState (86): v0.

The coordinator of a share group has the state of share-partitions removed.
"""

from collections.abc import Awaitable, Iterable
from uuid import UUID

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
from ottla.handlers.share_state_calls import (
    Begun,
    Outcome,
    begin_each,
    outcomes,
    refusals,
    validate_exists,
)
from ottla.protocol.errors import ApiError


def handle_delete_share_group_state(
    broker: Broker, _: RequestContext, request: DeleteShareGroupStateRequest
) -> Awaitable[DeleteShareGroupStateResponse]:
    def begin(key: SharePartitionKey, _: PartitionData) -> Awaitable[None]:
        validate_exists(broker, key)
        return broker.share.coordinator.delete(key)

    return _answer(begin_each(request, begin))


async def _answer(begun: Begun) -> DeleteShareGroupStateResponse:
    return _response(await outcomes(begun))


def error_response(
    request: DeleteShareGroupStateRequest, error: ApiError
) -> DeleteShareGroupStateResponse:
    return _response(refusals(request, error))


def _response(
    topics: Iterable[tuple[UUID | None, list[Outcome]]],
) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=tuple(
            DeleteStateResult(
                topic_id=topic_id,
                partitions=tuple(
                    PartitionResult(
                        partition=outcome.partition,
                        error_code=outcome.error_code,
                        error_message=outcome.error_message,
                    )
                    for outcome in found
                ),
            )
            for topic_id, found in topics
        )
    )

"""InitializeShareGroupState (83): v0.

The coordinator of a share group makes the state of share-partitions, or makes it anew.
"""

from collections.abc import Awaitable, Iterable
from uuid import UUID

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
from ottla.handlers.share_state_calls import Begun, Outcome, begin_each, outcomes, refusals
from ottla.protocol.errors import ApiError


def handle_initialize_share_group_state(
    broker: Broker, _: RequestContext, request: InitializeShareGroupStateRequest
) -> Awaitable[InitializeShareGroupStateResponse]:
    def begin(key: SharePartitionKey, data: PartitionData) -> Awaitable[None]:
        return broker.share.coordinator.initialize(key, data.state_epoch, data.start_offset)

    return _answer(begin_each(request, begin))


async def _answer(begun: Begun) -> InitializeShareGroupStateResponse:
    return _response(await outcomes(begun))


def error_response(
    request: InitializeShareGroupStateRequest, error: ApiError
) -> InitializeShareGroupStateResponse:
    return _response(refusals(request, error))


def _response(
    topics: Iterable[tuple[UUID | None, list[Outcome]]],
) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=tuple(
            InitializeStateResult(
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

"""DeleteShareGroupState (86): v0.

The coordinator of a share group deletes the state of share-partitions.
"""

from collections.abc import Awaitable

from kio.schema.delete_share_group_state.v0.request import PartitionData
from kio.schema.delete_share_group_state.v0.response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.broker import Broker
from ottla.handlers.share_state_calls import StateApi, only_error, validate_exists


def _delete(broker: Broker, key: SharePartitionKey, _: PartitionData) -> Awaitable[None]:
    validate_exists(broker, key)
    return broker.share.coordinator.delete(key)


_API = StateApi(
    _delete, DeleteShareGroupStateResponse, DeleteStateResult, only_error(PartitionResult)
)
handle, error_response = _API.handle, _API.error_response

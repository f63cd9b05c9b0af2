"""InitializeShareGroupState (83): v0.

The coordinator of a share group creates or resets the state of share-partitions.
"""

from collections.abc import Awaitable

from kio.schema.initialize_share_group_state.v0.request import PartitionData
from kio.schema.initialize_share_group_state.v0.response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.broker import Broker
from ottla.handlers.share_state_calls import StateApi, only_error


def _initialize(broker: Broker, key: SharePartitionKey, data: PartitionData) -> Awaitable[None]:
    return broker.share.coordinator.initialize(key, data.state_epoch, data.start_offset)


_API = StateApi(
    _initialize,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    only_error(PartitionResult),
)
handle, error_response = _API.handle, _API.error_response

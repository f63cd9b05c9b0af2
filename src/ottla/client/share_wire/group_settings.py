"""The configuration of a share group, as far as its members read and write it."""

from typing import Final, NamedTuple

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.types import GroupId

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.configs import ResourceType, alter_configs, describe_configs
from ottla.client.wire.cluster import CoordinatorType
from ottla.client.wire.errors import validate_answer
from ottla.protocol.errors import ErrorCode

OFFSET_RESET: Final = "share.auto.offset.reset"
LOCK_DURATION: Final = "share.record.lock.duration.ms"
LOCK_MS: Final = 30_000  # Unless the broker says otherwise.

_FROM_GROUP: Final = 8  # The source of a value that was set for the group.


class GroupSettings(NamedTuple):
    lock_ms: int
    has_offset_reset: bool  # Whether someone decided where the group begins.


async def read_settings(cluster: Cluster, group: str) -> GroupSettings:
    keys = (LOCK_DURATION, OFFSET_RESET)
    configs = await describe_configs(cluster, ResourceType.GROUP, group, keys)
    lock, reset = configs.get(LOCK_DURATION), configs.get(OFFSET_RESET)
    return GroupSettings(
        lock_ms=int(lock.value) if lock is not None and lock.value else LOCK_MS,
        has_offset_reset=reset is not None and reset.config_source == _FROM_GROUP,
    )


async def begin_group(cluster: Cluster, group: str) -> None:
    """An unused group begins with the first record, as expected of a queue."""
    coordinator = await cluster.coordinator(CoordinatorType.GROUP, group)
    describe = ShareGroupDescribeRequest(
        group_ids=(GroupId(group),), include_authorized_operations=False
    )
    (found,) = (await coordinator.call(describe)).groups
    if found.error_code is ErrorCode.none:
        return
    if found.error_code is not ErrorCode.group_id_not_found:
        validate_answer(found.error_code, f"group {group}")
    await alter_configs(cluster, ResourceType.GROUP, group, {OFFSET_RESET: "earliest"})

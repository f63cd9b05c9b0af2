"""A member of a share group: joins, stays by heartbeats, leaves.

Whatever partitions the coordinator assigns, a member fetches all of the topic: a leader hands
records to every member that asks, and two processes would otherwise each see half of a queue. The
group must exist and have met the topic for that, which is what membership is for.
"""

import asyncio
import logging
import random
from typing import Final

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.group_settings import begin_group, read_settings
from ottla.client.wire.cluster import CoordinatorType
from ottla.client.wire.errors import BrokerError, WireError, validate_answer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import in_milliseconds

logger = logging.getLogger(__name__)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1

_PAUSE_S: Final = 0.2
_PAUSE_S_MAX: Final = 5.0
_REJOIN: Final = {
    ErrorCode.unknown_member_id,
    ErrorCode.fenced_member_epoch,
    ErrorCode.group_id_not_found,
}


class Membership:
    def __init__(self, cluster: Cluster, topic: str, group: str, member_id: str) -> None:
        self.lock_ms = 0  # What the group is configured to; known after `join`.
        self._cluster = cluster
        self._topic = topic
        self._group = group
        self._member_id = member_id
        self._epoch = JOIN_EPOCH
        self._interval_s = _PAUSE_S
        self._task: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """WireError if it may not."""
        settings = await read_settings(self._cluster, self._group)
        self.lock_ms = settings.lock_ms
        if not settings.has_offset_reset:
            await begin_group(self._cluster, self._group)
        await self._beat()
        self._task = asyncio.create_task(self._stay(), name=f"member of {self._group}")

    async def leave(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._epoch == JOIN_EPOCH:
            return
        self._epoch = LEAVE_EPOCH
        try:
            await self._beat()
        except WireError as error:
            # The coordinator misses its heartbeats and removes it.
            logger.debug("%s could not leave %s: %s", self._member_id, self._group, error)

    async def _stay(self) -> None:
        pause_s = _PAUSE_S
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._beat()
                pause_s = _PAUSE_S
            except WireError as error:
                logger.debug("heartbeat of %s in %s: %s", self._member_id, self._group, error)
                self._on_refused(error)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def _on_refused(self, error: WireError) -> None:
        if isinstance(error, BrokerError) and error.code in _REJOIN:
            self._epoch = JOIN_EPOCH
        else:
            self._cluster.forget_metadata()

    async def _beat(self) -> None:
        joins = self._epoch == JOIN_EPOCH
        request = ShareGroupHeartbeatRequest(
            group_id=GroupId(self._group),
            member_id=self._member_id,
            member_epoch=i32(self._epoch),
            subscribed_topic_names=(TopicName(self._topic),) if joins else None,
        )
        coordinator = await self._cluster.coordinator(CoordinatorType.GROUP, self._group)
        response = await coordinator.call(request)
        validate_answer(response.error_code, f"group {self._group}")
        self._epoch = response.member_epoch
        interval_ms = in_milliseconds(response.heartbeat_interval)
        if interval_ms > 0:
            self._interval_s = interval_ms / 1000

"""A member of a consumer group that divides the partitions of one topic (KIP-848).

The coordinator assigns. Each heartbeat lists the partitions that the member owns, and it gives up a
partition before it stops listing it. So a partition has one owner at a time, even if a member
cannot reach the coordinator: it gives up everything when its session may have expired.
"""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import CoordinatorType
from ottla.client.wire.errors import BrokerError, WireError, validate_answer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

SESSION_TIMEOUT_S = 45.0  # Brokers' default.
REBALANCE_TIMEOUT_MS = 60_000

_JOIN = 0
_LEAVE = -1
_FENCED = (
    ErrorCode.unknown_member_id,
    ErrorCode.fenced_member_epoch,
    ErrorCode.group_id_not_found,
)
_FIRST_PAUSE_S = 0.1
_PAUSE_S_MAX = 5.0

logger = logging.getLogger(__name__)


class GroupMember:
    """`on_change` receives the owned partitions, and returns once it has released the others."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topic: str,
        on_change: Callable[[frozenset[int]], Awaitable[None]],
    ) -> None:
        self.member_id = str(uuid.uuid4())
        self.owned: frozenset[int] = frozenset()
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._on_change = on_change
        self._epoch = _JOIN
        self._topic_id: uuid.UUID | None = None
        self._interval_s = 1.0
        self._is_changed = True  # The coordinator must learn what is owned.

    async def run(self) -> None:
        """Runs until cancelled, then leaves the group."""
        pause_s = _FIRST_PAUSE_S
        last_heard_s = time.monotonic()
        try:
            while True:
                try:
                    await self._heartbeat()
                except WireError as error:
                    logger.debug("heartbeat to group %s: %s", self._group, error)
                    self._cluster.forget_metadata()
                    if time.monotonic() - last_heard_s > SESSION_TIMEOUT_S:
                        await self._lose_everything()
                    await asyncio.sleep(pause_s * random.uniform(0.5, 1))
                    pause_s = min(2 * pause_s, _PAUSE_S_MAX)
                    continue
                last_heard_s = time.monotonic()
                pause_s = _FIRST_PAUSE_S
                if not self._is_changed:
                    await asyncio.sleep(self._interval_s)
        finally:
            await self._leave()

    async def _heartbeat(self) -> None:
        request = self._request()
        self._is_changed = False
        try:
            response = await self._call(request)
            validate_answer(response.error_code, f"group {self._group}")
        except BrokerError as error:
            self._is_changed = True
            if error.code not in _FENCED:
                raise
            await self._lose_everything()
            return
        except WireError:
            self._is_changed = True
            raise
        self._epoch = response.member_epoch
        self._interval_s = response.heartbeat_interval.total_seconds()
        if response.assignment is not None:
            await self._take(response.assignment)

    async def _call(self, request: ConsumerGroupHeartbeatRequest) -> Any:
        coordinator = await self._cluster.coordinator(CoordinatorType.GROUP, self._group)
        return await coordinator.call(request)

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        joins = self._epoch == _JOIN
        owned: tuple[TopicPartitions, ...] | None = None
        if joins:
            owned = ()
        elif self._is_changed and self._topic_id is not None:
            partitions = tuple(i32(partition) for partition in sorted(self.owned))
            owned = (TopicPartitions(topic_id=self._topic_id, partitions=partitions),)
        return ConsumerGroupHeartbeatRequest(
            group_id=GroupId(self._group),
            member_id=self.member_id,
            member_epoch=i32(self._epoch),
            rebalance_timeout=milliseconds(REBALANCE_TIMEOUT_MS if joins else -1),
            subscribed_topic_names=(TopicName(self._topic),) if joins else None,
            topic_partitions=owned,
        )

    async def _take(self, assignment: Any) -> None:
        assigned: frozenset[int] = frozenset()
        for topic in assignment.topic_partitions:
            self._topic_id = topic.topic_id
            assigned |= frozenset(topic.partitions)
        if assigned != self.owned:
            self.owned = assigned
            await self._on_change(assigned)
            self._is_changed = True

    async def _lose_everything(self) -> None:
        self._epoch = _JOIN
        self._is_changed = True
        if self.owned:
            self.owned = frozenset()
            await self._on_change(self.owned)

    async def _leave(self) -> None:
        if self._epoch == _JOIN:
            return
        await self._lose_everything()
        self._epoch = _LEAVE
        self._is_changed = False
        with suppress(WireError, TimeoutError):
            async with asyncio.timeout(5):
                await self._call(self._request())

"""Sends dead letters that wait in share-partitions which no consumer reads.

A share-partition is loaded when a consumer fetches it, and the broker that has it loaded sends its
letters. After a change of leaders, or a restart, that may be none. The share coordinator knows
which share-partitions have letters, and periodically has their leaders load them. Another broker is
reminded with a ReadShareGroupStateSummary, which otherwise only a coordinator receives.
"""

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.share_coordinator import ShareCoordinator
from ottla.coordination.share_partitions import SharePartitions
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareStateMachine
from ottla.protocol.errors import ApiError
from ottla.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

LOOK_S: Final = 10.0


class WaitingLetters:
    def __init__(
        self,
        *,
        node_id: int,
        coordinators: Coordinators[ShareStateMachine],
        partitions: SharePartitions,
        image: MetadataImage,
        broker_at: Callable[[int], ShareCoordinator],
        random: Random,
        supervisor: Supervisor,
    ) -> None:
        """`broker_at` returns another broker, whether it is a coordinator or not."""
        self._node_id = node_id
        self._coordinators = coordinators
        self._partitions = partitions
        self._image = image
        self._broker_at = broker_at
        self._random = random
        self._supervisor = supervisor

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S * (0.5 + self._random.random()))
            await self.look()

    async def look(self) -> None:
        for runtime in self._coordinators.all():
            try:
                keys = list(runtime.machine.with_waiting_letters())
            except ApiError:
                continue  # It is being loaded.
            for key in keys:
                await self._have_sent(key)

    def on_reminder(self, key: SharePartitionKey) -> None:
        """Its coordinator reports that letters wait in it."""
        self._supervisor.start("waiting dead letters", self._load(key))

    async def _have_sent(self, key: SharePartitionKey) -> None:
        topic = self._image.topic_name(key.topic_id)
        state = None if topic is None else self._image.partition(topic, key.partition)
        if state is None or state.leader == NO_LEADER:
            return
        if state.leader == self._node_id:
            await self._load(key)
            return
        try:
            await self._broker_at(state.leader).read_summary(key)
        except ApiError as error:  # Usually that it does not coordinate this.
            logger.debug("broker %d, of dead letters: %s", state.leader, error)

    async def _load(self, key: SharePartitionKey) -> None:
        """Once loaded, a share-partition sends its letters by itself."""
        try:
            await self._partitions.find(key.group_id, TopicIdPartition(key.topic_id, key.partition))
        except ApiError as error:
            logger.debug("%s, of dead letters: %s", key.coordinator_key, error)

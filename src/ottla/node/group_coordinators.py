"""The group coordinators of this node: their machines over `__consumer_offsets`."""

import asyncio
import logging
from collections.abc import Collection
from concurrent.futures import Executor
from uuid import uuid4

from ottla.controller.image import MetadataImage
from ottla.groups.config import GroupConfig
from ottla.groups.coordinator import GroupMachine, partition_for
from ottla.groups.record_codec import GroupRecordCodec
from ottla.machine.contract import Timers
from ottla.protocol.topics import CONSUMER_OFFSETS_TOPIC
from ottla.replication.coordinators import Coordinators
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)


def group_coordinators(
    config: GroupConfig,
    image: MetadataImage,
    clock: Clock,
    supervisor: Supervisor,
    executor: Executor,
) -> Coordinators[GroupMachine]:
    def create_machine(timers: Timers) -> GroupMachine:
        return GroupMachine(
            config=config, catalog=image, timers=timers, new_uuid=lambda: str(uuid4())
        )

    return Coordinators(
        CONSUMER_OFFSETS_TOPIC,
        image,
        partition_for,
        create_machine,
        GroupRecordCodec(),
        clock,
        supervisor,
        asyncio.get_running_loop(),
        executor,
    )


def remove_offsets_of_topics(
    coordinators: Coordinators[GroupMachine], names: Collection[str]
) -> None:
    """Best effort: an offset knows the id of its topic, so none is taken for another topic's."""
    for runtime in coordinators.all():
        removal = runtime.submit(lambda machine, now_ms: machine.remove_topics(names, now_ms))
        removal.add_done_callback(_log_failure)


def _log_failure(removal: "asyncio.Future[None]") -> None:
    if not removal.cancelled() and (error := removal.exception()) is not None:
        logger.warning("the offsets of deleted topics were not removed: %s", error)

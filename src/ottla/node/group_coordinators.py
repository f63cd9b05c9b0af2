"""The group coordinators of this node: their machines over `__consumer_offsets`.

The machine is imported when this node begins to lead the first of those partitions, because a
broker without groups starts faster without it.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from ottla.coordination.coordinators import Coordinators
from ottla.groups.config import GroupConfig
from ottla.machine.contract import RecordCodec, Timers
from ottla.node.node_parts import Parts
from ottla.protocol.topics import CONSUMER_OFFSETS_TOPIC

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine

logger = logging.getLogger(__name__)


def group_coordinators(parts: Parts) -> "Coordinators[GroupMachine]":
    config, configs, image = GroupConfig.of(parts.values), parts.group_configs, parts.feed.image

    def create_machine(timers: Timers) -> "GroupMachine":
        from ottla.groups.coordinator import GroupMachine
        from ottla.groups.state import CoordinatorState

        state = CoordinatorState(
            config=config,
            catalog=image,
            timers=timers,
            new_uuid=lambda: str(parts.environment.new_uuid()),
            consumer_config=configs.consumer,
            share_config=configs.share,
            streams_config=configs.streams,
        )
        return GroupMachine(state)

    def create_codec() -> RecordCodec:
        from ottla.groups.record_codec import GroupRecordCodec

        return GroupRecordCodec()

    return Coordinators(
        topic=CONSUMER_OFFSETS_TOPIC,
        catalog=image,
        create_machine=create_machine,
        create_codec=create_codec,
        process=parts.process,
        write_timeout_ms=config.offsets_commit_timeout_ms,
    )


def remove_offsets_of_topics(
    coordinators: "Coordinators[GroupMachine]", names: Collection[str]
) -> None:
    """Best effort: an offset has the id of its topic, so none is mistaken for another topic's."""
    for runtime in coordinators.all():
        removal = runtime.submit(
            lambda machine, now_ms: machine.remove_topics(names, now_ms), has_timeout=False
        )
        removal.add_done_callback(_log_failure)


def _log_failure(removal: "asyncio.Future[None]") -> None:
    if not removal.cancelled() and (error := removal.exception()) is not None:
        logger.warning("the offsets of deleted topics were not removed: %s", error)

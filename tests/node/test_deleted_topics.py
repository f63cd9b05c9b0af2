import asyncio
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, cast
from uuid import UUID

import pytest
from kio.schema.types import TopicName
from tests.kits.manual_clock import ManualClock
from tests.runtime.machines import ManualCommitLog, TextCodec, Words

from ottla.controller.image import MetadataImage
from ottla.controller.records import RemoveTopicRecord, TopicRecord
from ottla.coordination.coordinators import Coordinators
from ottla.groups.coordinator import GroupMachine
from ottla.machine.result import Result
from ottla.node.deleted_topics import DeletedTopics
from ottla.node.group_coordinators import remove_offsets_of_topics
from ottla.protocol.errors import ApiError
from ottla.runtime.machine_runtime import MachineRuntime


def test_topics_that_are_deleted_together_are_told_together() -> None:
    async def run() -> None:
        reports: list[Collection[str]] = []
        image = MetadataImage()
        image.replay(TopicRecord(name=TopicName("old"), topic_id=UUID(int=1)))
        deleted = DeletedTopics(asyncio.get_running_loop(), reports.append)
        deleted.load(image)
        for record in (
            TopicRecord(name=TopicName("new"), topic_id=UUID(int=2)),
            TopicRecord(name=TopicName("kept"), topic_id=UUID(int=3)),
            RemoveTopicRecord(topic_id=UUID(int=1)),
            RemoveTopicRecord(topic_id=UUID(int=2)),
        ):
            deleted.on_record(record, image)
        assert reports == []
        await asyncio.sleep(0)
        assert reports == [{"old", "new"}]
        await asyncio.sleep(0)
        assert len(reports) == 1

    asyncio.run(run())


class Removing(Words):
    def remove_topics(self, topics: Collection[str], now_ms: int) -> Result[Any]:
        return self.add(*sorted(topics))


class Led(NamedTuple):
    """The coordinators of this broker."""

    runtime: MachineRuntime[Removing]

    def all(self) -> Iterator[MachineRuntime[Removing]]:
        yield self.runtime


def test_offsets_that_are_removed_when_followers_return_raise_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        log, clock = ManualCommitLog(), ManualClock(0)
        runtime = MachineRuntime(
            Removing,
            TextCodec(),
            log,
            clock,
            asyncio.get_running_loop(),
            name="words-0",
            on_failure=lambda error: None,
            write_timeout_ms=1,
        )
        await runtime.load()
        remove_offsets_of_topics(cast("Coordinators[GroupMachine]", Led(runtime)), {"old"})
        client = runtime.submit(lambda machine, now_ms: machine.count())
        clock.advance(1)
        with pytest.raises(ApiError):
            await client
        log.commit()
        await asyncio.sleep(0)
        assert runtime.machine.words == ["old"]

    asyncio.run(run())
    assert caplog.messages == []

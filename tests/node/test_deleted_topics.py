import asyncio
from collections.abc import Collection
from uuid import UUID

from kio.schema.types import TopicName

from ottla.controller.image import MetadataImage
from ottla.controller.records import RemoveTopicRecord, TopicRecord
from ottla.node.deleted_topics import DeletedTopics


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

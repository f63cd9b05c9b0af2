"""Reports deleted topics by name, all of one turn of the loop at once."""

from asyncio import AbstractEventLoop
from collections.abc import Callable, Collection
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import RemoveTopicRecord, TopicRecord


class DeletedTopics:
    def __init__(
        self, loop: AbstractEventLoop, on_deleted: Callable[[Collection[str]], object]
    ) -> None:
        self._loop = loop
        self._on_deleted = on_deleted
        self._names: dict[UUID, str] = {}  # The record of a removal has only the id.
        self._deleted: set[str] = set()

    def load(self, image: MetadataImage) -> None:
        self._names = {topic.topic_id: topic.name for topic in image.topics.values()}

    def on_record(self, record: object, _: MetadataImage) -> None:
        if isinstance(record, TopicRecord):
            self._names[record.topic_id] = record.name
        elif isinstance(record, RemoveTopicRecord):
            if not self._deleted:
                self._loop.call_soon(self._tell)
            self._deleted.add(self._names.pop(record.topic_id))

    def _tell(self) -> None:
        deleted, self._deleted = self._deleted, set()
        self._on_deleted(deleted)

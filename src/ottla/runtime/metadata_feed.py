"""This node's image of the cluster, and the listeners to its changes."""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import RemoveTopicRecord


class MetadataListener(NamedTuple):
    on_record: Callable[[object, MetadataImage], None]  # The record is committed, and in the image.
    # A snapshot from another node has replaced the image: anything may have changed.
    on_image_replaced: Callable[[MetadataImage], None]


class MetadataFeed:
    def __init__(self) -> None:
        self.image = MetadataImage()  # Always the same object.
        self.offset = -1  # Of the last record in the image.
        self._listeners: list[MetadataListener] = []
        self._removed_topic_ids: set[UUID] = set()

    def listen(self, listener: MetadataListener) -> None:
        self._listeners.append(listener)

    def take_removed_topic_ids(self) -> set[UUID]:
        """The topics deleted in the log, as far as it was replayed; then forgotten."""
        removed, self._removed_topic_ids = self._removed_topic_ids, set()
        return removed

    def on_committed(self, record: object, offset: int) -> None:
        self.image.replay(record)
        self.offset = offset
        if not self._listeners and isinstance(record, RemoveTopicRecord):
            self._removed_topic_ids.add(record.topic_id)
        for listener in self._listeners:
            listener.on_record(record, self.image)

    def replace(self, records: Iterable[object], offset: int) -> None:
        """A snapshot replaces everything; `offset` is that of its last record."""
        image = MetadataImage()
        for record in records:
            image.replay(record)
        self.image.replace_with(image)
        self.offset = offset
        for listener in self._listeners:
            listener.on_image_replaced(self.image)

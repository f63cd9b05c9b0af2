"""This node's image of the cluster, and who is told when it changes."""

from collections.abc import Callable
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import RemoveTopicRecord

Listener = Callable[[object, MetadataImage], None]  # A committed record, and the image with it.


class MetadataFeed:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.offset = -1  # Of the last record in the image.
        self._listeners: list[Listener] = []
        self._removed_topic_ids: set[UUID] = set()

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def take_removed_topic_ids(self) -> set[UUID]:
        """Topics that the log, as far as it was replayed, says to be deleted; kept no longer."""
        removed, self._removed_topic_ids = self._removed_topic_ids, set()
        return removed

    def on_committed(self, record: object, offset: int) -> None:
        self.image.replay(record)
        self.offset = offset
        if not self._listeners and isinstance(record, RemoveTopicRecord):
            self._removed_topic_ids.add(record.topic_id)
        for listener in self._listeners:
            listener(record, self.image)

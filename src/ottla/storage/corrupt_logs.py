"""Logs that are not served at all, because the extent of their damage is unknown."""

import logging
from collections.abc import Callable
from uuid import UUID

from ottla.protocol.topics import TopicPartition
from ottla.storage.checkpoints import read_partition_metadata
from ottla.storage.errors import CorruptLog
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.partition_names import name_for_stray
from ottla.storage.text_checkpoint import CorruptCheckpoint

logger = logging.getLogger(__name__)


class CorruptLogs:
    def __init__(self, filesystem: Filesystem, new_id: Callable[[], UUID]) -> None:
        self.all: dict[TopicPartition, CorruptLog] = {}
        self._filesystem = filesystem
        self._new_id = new_id

    def find(self, topic_partition: TopicPartition, topic_id: UUID) -> CorruptLog | None:
        """The topic's corrupt log; a log of another topic with the same name is set aside."""
        corrupt = self.all.get(topic_partition)
        if corrupt is not None and self._topic_id(corrupt) not in (topic_id, None):
            self.set_aside(topic_partition)
            return None
        return corrupt

    def take_deletable(self, topic_partition: TopicPartition) -> CorruptLog | None:
        """A log that may belong to another topic is set aside instead."""
        corrupt = self.all.get(topic_partition)
        if corrupt is not None and self._topic_id(corrupt) is None:
            self.set_aside(topic_partition)
            return None
        return self.all.pop(topic_partition, None)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Keep the damaged files under a name that ends in `-stray`, until someone removes them.

        This makes room for a new replica, from the leader or a backup.
        """
        corrupt = self.all.pop(topic_partition, None)
        if corrupt is not None:
            name = name_for_stray(topic_partition, self._new_id())
            path = f"{parent_of(corrupt.directory)}/{name}"
            self._filesystem.rename(corrupt.directory, path)
            logger.warning("%s is damaged, and is set aside as %s", corrupt.directory, path)

    def _topic_id(self, corrupt: CorruptLog) -> UUID | None:
        try:
            return read_partition_metadata(self._filesystem, corrupt.directory)
        except CorruptCheckpoint:
            return None

"""The offset of a stream, as it stands in the checkpoint and in a query's progress.

`{"orders": {"0": 23, "1": 40}, "@ids": {"orders": "..."}}`: the next offset of each partition, as
Spark's Kafka source writes it, and the ids of the topics, by which one that was deleted and made
again is known. Topics never have an @ in their name. What is equal is written alike.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.client.wire.cluster import TopicPartition

_IDS = "@ids"


class StreamOffset(NamedTuple):
    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]  # Without the topics whose broker knows no ids.

    def as_json(self) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for place in sorted(self.offsets):
            partitions = written.setdefault(place.topic, {})
            partitions[str(place.partition)] = self.offsets[place]
        ids = {topic: self.topic_ids[topic] for topic in written if topic in self.topic_ids}
        return written | ({_IDS: ids} if ids else {})


def parse_stream_offset(written: Mapping[str, Any]) -> StreamOffset:
    offsets = {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in written.items()
        if topic != _IDS
        for partition, offset in partitions.items()
    }
    return StreamOffset(offsets, written.get(_IDS, {}))

"""A stream's offset, as in its checkpoint and progress reports.

`{"orders": {"0": 23, "1": 40}, "@ids": {"orders": "..."}}`: the next offset of each partition, as
Spark's Kafka source writes it, and the topic ids, which reveal a topic that was deleted and
recreated. Topic names never contain @. Equal offsets are written identically.

Spark stores the end of a micro-batch, whose start is the end of the one before. The first one has
no predecessor, so its end records its start in "@start": otherwise a query restarted before its
first commit would begin at what is the latest by then. "@initial" marks where a query begins.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.client.wire.cluster import TopicPartition

_IDS = "@ids"
_INITIAL = "@initial"
_START = "@start"

Offsets = Mapping[TopicPartition, int]


class StreamOffset(NamedTuple):
    offsets: Offsets
    topic_ids: Mapping[str, str]  # Without topics whose broker has no ids.
    is_initial: bool = False
    start: Offsets | None = None  # Of the micro-batch that ends here, if it is the first.

    def as_json(self) -> dict[str, Any]:
        written = by_topic(self.offsets)
        ids = {topic: self.topic_ids[topic] for topic in written if topic in self.topic_ids}
        if ids:
            written[_IDS] = ids
        if self.is_initial:
            written[_INITIAL] = True
        if self.start is not None:
            written[_START] = by_topic(self.start)
        return written

    def first_start(self) -> Offsets | None:
        """Where the micro-batch that ends here starts, if it is its query's first."""
        return self.offsets if self.is_initial else self.start


def parse_stream_offset(written: Mapping[str, Any]) -> StreamOffset:
    start = written.get(_START)
    return StreamOffset(
        flat_offsets(written),
        written.get(_IDS, {}),
        written.get(_INITIAL, False),
        None if start is None else flat_offsets(start),
    )


def by_topic(offsets: Offsets) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for partition in sorted(offsets):
        written.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return written


def flat_offsets(written: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The inverse of `by_topic`; leaves out what is not a topic's."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in written.items()
        if not topic.startswith("@")
        for partition, offset in partitions.items()
    }

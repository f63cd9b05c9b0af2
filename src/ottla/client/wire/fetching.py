"""Fetch the record batches of one partition, exactly as they are in the log.

The next request can be in flight while the last response is processed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from kio.schema.fetch.v18.request import FetchPartition
from kio.static.primitive import i8, i32, i64

from ottla.client.wire.cluster import Cluster, Topic, TopicPartition, by_topic, expect_one
from ottla.client.wire.connection import Connection, Sent
from ottla.client.wire.errors import OffsetOutOfRange, Unreachable, validate_answer
from ottla.client.wire.offsets import Isolation
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchRequest, FetchTopic
from ottla.protocol.times import milliseconds
from ottla.records.isolation import AbortedTransaction

BYTES_MAX = 8 * 1024 * 1024
WAIT_MS = 500


class Fetched(NamedTuple):
    records: memoryview  # Whole batches, and perhaps part of one more; valid until the next fetch.
    aborted: Sequence[AbortedTransaction]  # Empty when reading uncommitted records.
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Fetcher:
    """Reads one partition over its own connection, which goes back to the cluster at the end."""

    def __init__(
        self,
        cluster: Cluster,
        topic_partition: TopicPartition,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        *,
        bytes_max: int = BYTES_MAX,
        wait_ms: int = WAIT_MS,
    ) -> None:
        self._cluster = cluster
        self._topic_partition = topic_partition
        self._isolation = isolation
        self._bytes_max = bytes_max
        self._wait_ms = wait_ms
        self._connection: Connection | None = None
        self._asked: tuple[int, Sent] | None = None  # The offset, and the request for it.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if self._connection is not None and self._asked is None and failure is None:
            self._cluster.give_back(self._connection)
            self._connection = None
        self.close()

    def close(self) -> None:
        """Close the connection, with any responses still in flight."""
        self._asked = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, offset: int) -> None:
        """Request the batches from the offset that the next `fetch` will be called with.

        Errors surface in that `fetch`.
        """
        try:
            self._asked = offset, self._send(offset)
        except Unreachable:
            self.close()

    def fetch(self, offset: int) -> Fetched:
        """Batches from the one that contains the offset; none if no record arrives in time."""
        return self._cluster.retry(lambda: self._fetch(offset))

    def _fetch(self, offset: int) -> Fetched:
        try:
            if self._asked is None or self._asked[0] != offset:
                self._asked = offset, self._send(offset)
            _, sent = self._asked
            self._asked = None
            assert self._connection is not None
            response = self._connection.receive(sent, in_place=True)
            return fetched(response, self._topic_partition, offset)
        except BaseException:
            self.close()
            raise

    def _send(self, offset: int) -> Sent:
        if self._asked is not None:
            self.close()  # Drops the prefetched response for another offset.
        topic = self._cluster.topic(self._topic_partition.topic)
        if self._connection is None:
            self._connection = self._cluster.own_connection_to_leader(self._topic_partition)
        return self._connection.send(
            fetch_request(
                {self._topic_partition: offset},
                {self._topic_partition.topic: topic},
                self._isolation,
                bytes_max=self._bytes_max,
                wait_ms=self._wait_ms,
            )
        )


def fetch_request(
    positions: Mapping[TopicPartition, int],
    topics: Mapping[str, Topic],
    isolation: Isolation,
    *,
    bytes_max: int,
    partition_bytes_max: int | None = None,
    wait_ms: int,
) -> FetchRequest:
    """From these offsets on; `partition_bytes_max` defaults to `bytes_max`."""
    wanted = tuple(
        FetchTopic(
            topic=name,
            topic_id=topics[name].id,
            partitions=tuple(
                FetchPartition(
                    partition=i32(partition),
                    fetch_offset=i64(positions[TopicPartition(name, partition)]),
                    partition_max_bytes=i32(partition_bytes_max or bytes_max),
                )
                for partition in partitions
            ),
        )
        for name, partitions in by_topic(positions).items()
    )
    return FetchRequest(
        max_wait=milliseconds(wait_ms),
        min_bytes=i32(1),
        max_bytes=i32(bytes_max),
        isolation_level=i8(isolation),
        topics=wanted,
        forgotten_topics_data=(),
    )


def fetched(response: Any, topic_partition: TopicPartition, offset: int) -> Fetched:
    """The content of a response to `fetch_request`. Raises OffsetOutOfRange or BrokerError."""
    what = f"fetch of {topic_partition} at offset {offset}"
    validate_answer(response.error_code, what)
    answer = expect_one(expect_one(response.responses).partitions)
    if answer.error_code is ErrorCode.offset_out_of_range:
        raise OffsetOutOfRange(what)
    validate_answer(answer.error_code, what)
    return Fetched(
        memoryview(b"") if answer.records is None else answer.records,
        aborted_in(answer),
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
    )


def aborted_in(answer: Any) -> list[AbortedTransaction]:
    """The transactions that the answer about a partition lists."""
    return [
        AbortedTransaction(item.producer_id, item.first_offset)
        for item in answer.aborted_transactions or ()
    ]

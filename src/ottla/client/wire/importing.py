"""Write record batches with the offsets they already have. Only Ottla supports this.

An importer asks where the log ends and sends what follows. Several requests are in flight at a
time. Each names the offset at which the log must end, so when one fails the later ones fail too,
and the importer starts over by asking for the end.
"""

from collections import deque
from typing import Self, cast

from kio.static.primitive import i32, i64

from ottla.client.wire.cluster import Cluster, TopicPartition, expect_one
from ottla.client.wire.connection import Connection, Sent
from ottla.client.wire.errors import validate_answer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.import_records import (
    ImportedPartition,
    ImportedTopic,
    ImportRecordsRequest,
    PartitionResult,
)
from ottla.protocol.times import milliseconds

IN_FLIGHT_MAX = 8
TIMEOUT_MS = 20_000


class Importer:
    """Imports into one partition over its own connection to the leader."""

    def __init__(self, cluster: Cluster, topic_partition: TopicPartition) -> None:
        """After a WireError that may pass, start over with a new importer."""
        self._cluster = cluster
        self._topic_partition = topic_partition
        self._topic_id = cluster.topic(topic_partition.topic).id
        self._connection: Connection = cluster.own_connection_to_leader(topic_partition)
        self._sent: deque[Sent] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None and not self._sent:
            self._cluster.give_back(self._connection)
        else:
            self._connection.close()

    def begin(self, log_start_offset: int) -> int:
        """Return the log end offset. An empty log that ends before the given offset moves there."""
        self._send(log_start_offset, log_start_offset, b"")
        result = self._receive()
        if result.error_code is not ErrorCode.offset_out_of_range:
            self._validate(result)
        return result.log_end_offset

    def write(self, records: bytes | bytearray | memoryview, next_offset: int) -> None:
        """Send whole batches for a log that ends at `next_offset`; may raise for earlier ones."""
        self._send(0, next_offset, records)
        if len(self._sent) >= IN_FLIGHT_MAX:
            self._validate(self._receive())

    def finish(self) -> None:
        """Wait until everything written is on every in-sync replica."""
        while self._sent:
            self._validate(self._receive())

    def _send(
        self, log_start_offset: int, next_offset: int, records: bytes | bytearray | memoryview
    ) -> None:
        partition = ImportedPartition(
            partition_index=i32(self._topic_partition.partition),
            log_start_offset=i64(log_start_offset),
            next_offset=i64(next_offset),
            records=cast("bytes", records),
        )
        topic = ImportedTopic(topic_id=self._topic_id, partitions=(partition,))
        request = ImportRecordsRequest(timeout=milliseconds(TIMEOUT_MS), topics=(topic,))
        self._sent.append(self._connection.send(request))

    def _receive(self) -> PartitionResult:
        response = self._connection.receive(self._sent.popleft())
        result: PartitionResult = expect_one(expect_one(response.topics).partitions)
        return result

    def _validate(self, result: PartitionResult) -> None:
        what = f"import into {self._topic_partition}"
        validate_answer(result.error_code, what, result.error_message)

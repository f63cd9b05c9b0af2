"""What one replica of a partition has, read from its node whether it leads or follows (KIP-392)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kio.schema.fetch.v18.request import FetchPartition
from kio.static.primitive import i8, i32, i64

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.errors import CommandError
from ottla.client.wire.offsets import LATEST, Isolation, offsets_request
from ottla.protocol.messages.fetch import FetchRequest, FetchTopic
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import iterate_headers

_FETCH_VERSION = 12  # The last that names topics; from 11 on followers answer.
_BYTES_MAX = 4 << 20


class Bounds(NamedTuple):
    log_start_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class ReplicaReader:
    broker: BrokerCall
    topic_partition: TopicPartition

    @property
    def node_id(self) -> int:
        return self.broker.node_id

    def end_offset(self) -> int:
        """The high watermark, of the leader's replica alone."""
        request = offsets_request({self.topic_partition: LATEST}, Isolation.READ_UNCOMMITTED)
        response = self.broker.call(request)
        (answer,) = response.topics[0].partitions
        check(answer.error_code, str(self.topic_partition))
        return int(answer.offset)

    def bounds(self, end_offset: int) -> Bounds:
        """`end_offset` is one that the replica has, or the one after its last."""
        answer = self._fetch(end_offset)
        return Bounds(answer.log_start_offset, answer.high_watermark)

    def content(self, start_offset: int, end_offset: int) -> Iterator[memoryview]:
        """Whole batches, from the one with the first offset to the one with the last."""
        offset = start_offset
        while offset < end_offset:
            records = memoryview(self._fetch(offset).records or b"")
            end = 0
            for position, header in iterate_headers(records):
                if header.base_offset >= end_offset:
                    break
                end, offset = position + header.size, header.next_offset
            if not end:
                raise CommandError(
                    f"{self.topic_partition} on node {self.node_id}: no batch at offset {offset}"
                )
            yield records[:end]

    def _fetch(self, offset: int) -> Any:
        partition = FetchPartition(
            partition=i32(self.topic_partition.partition),
            fetch_offset=i64(offset),
            partition_max_bytes=i32(_BYTES_MAX),
        )
        topic = FetchTopic(topic=self.topic_partition.topic, topic_id=None, partitions=(partition,))
        request = FetchRequest(
            max_wait=milliseconds(0),
            min_bytes=i32(0),
            max_bytes=i32(_BYTES_MAX),
            isolation_level=i8(0),
            topics=(topic,),
            forgotten_topics_data=(),
        )
        response = self.broker.call(request, _FETCH_VERSION)
        of = f"{self.topic_partition} on node {self.node_id} at offset {offset}"
        check(response.error_code, of)
        (answer,) = response.responses[0].partitions
        check(answer.error_code, of)
        return answer

"""Reads records of a partition as consumers do."""

from collections.abc import Iterator
from typing import Any

from kio.schema.fetch.v18.request import FetchPartition
from kio.static.primitive import i8, i32, i64

from ottla.protocol.messages.fetch import FetchRequest, FetchTopic
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import BatchHeader, iterate_headers, validate_checksum
from ottla.records.decoder import ControlType, control_type, iterate_records
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.client import (
    Client,
    Leader,
    RefusedError,
    Unavailable,
    check,
)
from ottla.testing.simulator.events import Read, ReadRecord
from ottla.testing.simulator.violation import Violation

WAIT_MS_MAX = 500
PARTITION_BYTES_MAX = 65_536


async def read(client: Client, history: History, partition: TopicPartition) -> None:
    """A consumer of one partition, from its beginning on."""
    fetcher = Fetcher(client, partition, committed=False)
    while not client.stopping:
        for record in await fetcher.poll():
            history.tell(Read(client.name, partition, record))


class Fetcher:
    """Reads on where it has stopped."""

    def __init__(
        self,
        client: Client,
        partition: TopicPartition,
        offset: int = 0,
        *,
        committed: bool,
        version: int | None = None,
    ) -> None:
        self.partition = partition
        self.offset = offset  # Of the next record.
        self.end_offset = -1  # The high watermark when it was last asked.
        self._client = client
        self._committed = committed
        self._version = version or client.chance.choice((12, 18))

    async def poll(self, wait_ms: int = WAIT_MS_MAX) -> list[ReadRecord]:
        """What comes next; nothing after a while, or after a failure."""
        client = self._client
        try:
            data = await self._fetch(wait_ms)
        except Unavailable:
            self.end_offset = -1
            await client.back_off()
            return []
        except RefusedError as error:
            raise Violation(
                f"{client.name} cannot read {self.partition} from {self.offset}: {error}"
            ) from error
        self.end_offset = data.high_watermark
        return list(self._take(data))

    async def _fetch(self, wait_ms: int) -> Any:
        async with self._client.leader(self.partition) as leader:
            request = await self._request(leader, wait_ms)
            response = await self._client.call(
                leader.address, request, self._version, purpose=f"fetch {self.partition}"
            )
            check(response.error_code)
            (topic_response,) = response.responses
            (data,) = topic_response.partitions
            check(data.error_code)
        return data

    async def _request(self, leader: Leader, wait_ms: int) -> FetchRequest:
        topic, index = self.partition
        topic_id = await self._client.topic_id(topic)
        wanted = FetchPartition(
            partition=i32(index),
            current_leader_epoch=i32(leader.epoch),
            fetch_offset=i64(self.offset),
            partition_max_bytes=i32(PARTITION_BYTES_MAX),
            replica_directory_id=None,
        )
        return FetchRequest(
            max_wait=milliseconds(wait_ms),
            min_bytes=i32(1),
            isolation_level=i8(self._committed),
            topics=(FetchTopic(topic=topic, topic_id=topic_id, partitions=(wanted,)),),
            forgotten_topics_data=(),
        )

    def _take(self, data: Any) -> Iterator[ReadRecord]:
        aborted = _Aborted(data.aborted_transactions if self._committed else None)
        records = data.records or b""
        for position, header in iterate_headers(records):
            validate_checksum(records, position, header)
            if not aborted.hides(header, records, position) and not header.is_control:
                for record in iterate_records(records, position):
                    if record.offset >= self.offset:
                        yield ReadRecord(record.offset, record.value or b"")
            self.offset = max(self.offset, header.next_offset)


class _Aborted:
    """Which batches of a fetched piece belong to transactions that were aborted."""

    def __init__(self, transactions: Any) -> None:
        self._to_come = sorted(
            ((each.first_offset, each.producer_id) for each in transactions or ()), reverse=True
        )
        self._open: set[int] = set()

    def hides(self, header: BatchHeader, data: bytes, position: int) -> bool:
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._open.add(self._to_come.pop()[1])
        if header.is_control:
            (record,) = iterate_records(data, position)
            if control_type(record) == ControlType.ABORT:
                self._open.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._open


async def read_to_end(
    client: Client,
    partition: TopicPartition,
    records: list[ReadRecord],
    *,
    committed: bool = False,
) -> None:
    """Of what there is now, into `records`."""
    fetcher = Fetcher(client, partition, committed=committed)
    while fetcher.end_offset != fetcher.offset:
        records += await fetcher.poll(wait_ms=0)

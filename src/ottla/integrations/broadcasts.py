"""Broadcast queues: each belongs to one connection, which reads what is published from now on.

An exchange that delivers to everyone is a topic with one partition. Each listener reads it from the
end that it had when listening began. Nothing is acknowledged or stored about listeners.
"""

import asyncio
from asyncio import Task
from collections import deque
from collections.abc import Callable
from typing import Final

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.async_wire.reading import fetch, list_offsets
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import OffsetOutOfRange, WireError
from ottla.client.wire.offsets import LATEST
from ottla.integrations.task_queue import Trouble
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records

ROUTING_KEY_HEADER: Final = "ottla-routing-key"
TOPIC_CONFIG: Final = {"retention.ms": "3600000"}

_WAIT_MS: Final = 5_000

Accepts = Callable[[str], bool]  # Whether a routing key is of interest.


class Listener:
    """`listen` runs in the engine's loop; `messages` is read by whoever delivers them."""

    def __init__(self, cluster: Cluster, wake: Callable[[], None]) -> None:
        self.messages: deque[bytes] = deque()
        self._cluster = cluster
        self._wake = wake
        self._accepts: dict[str, list[Accepts]] = {}  # By topic.
        self._readers: list[Task[None]] = []

    @property
    def listens(self) -> bool:
        return bool(self._readers)

    async def listen(self, topic: str, accepts: Accepts) -> None:
        """Everything published after this returns is received."""
        if topic in self._accepts:
            self._accepts[topic].append(accepts)
            return
        self._accepts[topic] = [accepts]
        offset = await self._end(TopicPartition(topic, 0))
        self._readers.append(asyncio.create_task(self._read(TopicPartition(topic, 0), offset)))

    async def close(self) -> None:
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _end(self, topic_partition: TopicPartition) -> int:
        (offset,) = (await list_offsets(self._cluster, {topic_partition: LATEST})).values()
        return offset or 0

    async def _read(self, topic_partition: TopicPartition, offset: int) -> None:
        trouble = Trouble(f"broadcasts of {topic_partition.topic} do not arrive")
        connection: Connection | None = None
        try:
            while True:
                try:
                    if connection is None or connection.closed:
                        connection = await self._cluster.own_connection_to_leader(topic_partition)
                    offset = await self._read_on(connection, topic_partition, offset)
                    trouble.on_success()
                except OffsetOutOfRange:
                    offset = await self._end(topic_partition)  # Retention removed the offset.
                except WireError as error:
                    self._cluster.forget_metadata()
                    await trouble.on_error(error)
        finally:
            if connection is not None:
                connection.close()

    async def _read_on(
        self, connection: Connection, topic_partition: TopicPartition, offset: int
    ) -> int:
        found = await fetch(self._cluster, connection, topic_partition, offset, wait_ms=_WAIT_MS)
        records = bytes(found.records)
        for position, header in iterate_headers(records):
            for record in () if header.is_control else iterate_records(records, position):
                if record.offset >= offset:
                    self._hear(topic_partition.topic, record)
            offset = max(offset, header.next_offset)
        return offset

    def _hear(self, topic: str, record: Record) -> None:
        key = next((value for name, value in record.headers if name == ROUTING_KEY_HEADER), b"")
        routing_key = (key or b"").decode()
        if any(accepts(routing_key) for accepts in self._accepts[topic]):
            self.messages.append(record.value or b"")
            self._wake()

"""A client for tests that share an event loop with their node."""

import asyncio
import struct
from typing import Any, Self, cast

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i64
from tests.kits.raw_requests import read_response, request_frame

from ottla.protocol.times import milliseconds
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records


class WireClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    @property
    def port(self) -> int:
        """Of the node."""
        return int(self._writer.get_extra_info("peername")[1])

    async def call(self, request: Any) -> Any:
        self._writer.write(request_frame(request, 1, "test"))
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        return read_response(request, await self._reader.readexactly(size))

    async def create_topic(self, name: str, partitions: int = 1) -> None:
        topic = CreatableTopic(
            name=TopicName(name),
            num_partitions=i32(partitions),
            replication_factor=i16(1),
            assignments=(),
            configs=(),
        )
        request = CreateTopicsRequest(
            topics=(topic,), timeout=milliseconds(30_000), validate_only=False
        )
        response = await self.call(request)
        assert response.topics[0].error_code == 0

    async def produce(self, topic: str, *values: bytes, acks: int = -1) -> Any:
        """The response for partition 0."""
        batch = build_batch([Record(timestamp=1_700_000_000_000, value=value) for value in values])
        data = PartitionProduceData(index=i32(0), records=cast("Records", bytes(batch)))
        request = ProduceRequest(
            acks=i16(acks),
            timeout=milliseconds(30_000),
            topic_data=(TopicProduceData(name=TopicName(topic), partition_data=(data,)),),
        )
        response = await self.call(request)
        return response.responses[0].partition_responses[0]

    async def fetch(
        self, topic: str, offset: int, *, max_wait_ms: int = 0, min_bytes: int = 1
    ) -> Any:
        """The response for partition 0."""
        wanted = FetchPartition(
            partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(1 << 20)
        )
        request = FetchRequest(
            max_wait=milliseconds(max_wait_ms),
            min_bytes=i32(min_bytes),
            topics=(FetchTopic(topic=TopicName(topic), partitions=(wanted,)),),
            forgotten_topics_data=(),
        )
        response = await self.call(request)
        return response.responses[0].partitions[0]

    async def read_all(self, topic: str) -> list[bytes | None]:
        values: list[bytes | None] = []
        while data := (await self.fetch(topic, len(values))).records:
            for position, _ in iterate_headers(data):
                values += [record.value for record in iterate_records(data, position)]
        return values

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

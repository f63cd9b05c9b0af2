"""The built-in probe of a node: a record through every broker and back, once per interval.

The node with the active controller sends them, so that a cluster has one probe, whichever nodes are
alive. Each broker has its own topic, as for `ottla probe`, with one partition that it should lead.
A record is lost if it was not written or not read back in time, or if another broker leads the
partition.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic_ns
from typing import Any, Final
from uuid import UUID

from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.fetch.v18.request import FetchPartition
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i64

from ottla.controller.image import MetadataImage
from ottla.coordination.record_routes import produce_request
from ottla.network.durations import Durations
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.messages.fetch import FetchRequest, FetchTopic
from ottla.protocol.times import milliseconds
from ottla.records.builder import Record, build_batch
from ottla.runtime.clock import Clock
from ottla.runtime.other_brokers import AskBroker

PREFIX: Final = "ottla-probe-"
REPLICAS_MAX: Final = 3
TIMEOUT_MS: Final = 5_000

_CONFIG: Final = {"retention.ms": "3600000", "segment.bytes": "1048576"}
_FETCH_BYTES: Final = 65_536
_FETCH_WAIT_MS: Final = 1_000
_READABLE_WAIT_S: Final = 0.01
_THERE: Final = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})


class ProbeCounters(Durations):
    """Of the records sent through one broker."""

    __slots__ = ("last_ns", "lost")

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0
        self.last_ns = 0  # The duration of the last returned one.


@dataclass(slots=True, kw_only=True)
class Probe:
    image: MetadataImage
    is_active: Callable[[], bool]  # Whether this node should send them now.
    create_topics: Callable[[CreateTopicsRequest], Awaitable[Any]]
    ask: AskBroker
    clock: Clock
    interval_s: float
    counters: dict[int, ProbeCounters]  # By broker; empty where the probe is inactive.

    async def watch(self) -> None:
        while True:
            begun_ms = self.clock.monotonic_ms()
            if self.is_active():
                await self.round()
            else:
                self.counters.clear()
            took_s = (self.clock.monotonic_ms() - begun_ms) / 1000
            await asyncio.sleep(max(0.01, self.interval_s - took_s))

    async def round(self) -> None:
        brokers = sorted(int(broker.broker_id) for broker in self.image.brokers.values())
        await self._create_missing(brokers)
        for gone in self.counters.keys() - set(brokers):
            del self.counters[gone]
        await asyncio.gather(*map(self._through, brokers))

    async def _through(self, broker: int) -> None:
        counters = self.counters.setdefault(broker, ProbeCounters())
        begun_ns = monotonic_ns()
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                await self._write_and_read(broker)
        except (ApiError, TimeoutError):
            counters.lost += 1
        else:
            counters.last_ns = monotonic_ns() - begun_ns
            counters.add(counters.last_ns)

    async def _write_and_read(self, broker: int) -> None:
        """Raises ApiError if it cannot be written, or another broker leads the partition."""
        topic = self.image.topics.get(f"{PREFIX}{broker}")
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        value = str(monotonic_ns()).encode()
        batch = build_batch([Record(timestamp=self.clock.now_ms(), value=value)])
        produced = await self.ask(
            broker, produce_request(topic.topic_id, 0, bytes(batch), TIMEOUT_MS)
        )
        (written,) = produced.responses[0].partition_responses
        if written.error_code:
            raise ApiError(ErrorCode(written.error_code))
        while True:
            fetched = await self.ask(broker, _fetch(topic.topic_id, written.base_offset))
            (data,) = fetched.responses[0].partitions
            if data.error_code:
                raise ApiError(ErrorCode(data.error_code))
            if value in bytes(data.records or b""):
                return
            await asyncio.sleep(_READABLE_WAIT_S)

    async def _create_missing(self, brokers: list[int]) -> None:
        missing = [each for each in brokers if f"{PREFIX}{each}" not in self.image.topics]
        active = {broker.broker_id for broker in self.image.active_brokers()}
        topics = tuple(
            _topic(each, [broker for broker in brokers if broker in active]) for each in missing
        )
        if topics and active >= set(missing):
            try:
                await self.create_topics(
                    CreateTopicsRequest(
                        topics=topics, timeout=milliseconds(TIMEOUT_MS), validate_only=False
                    )
                )
            except ApiError:
                return  # The next round retries.


def _topic(broker: int, brokers: list[int]) -> CreatableTopic:
    start = brokers.index(broker) if broker in brokers else 0
    replicas = (brokers[start:] + brokers[:start])[:REPLICAS_MAX]
    assigned = CreatableReplicaAssignment(
        partition_index=i32(0), broker_ids=tuple(map(BrokerId, replicas))
    )
    return CreatableTopic(
        name=TopicName(f"{PREFIX}{broker}"),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=(assigned,),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in _CONFIG.items()
        ),
    )


def _fetch(topic_id: UUID, offset: int) -> FetchRequest:
    wanted = FetchPartition(
        partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(_FETCH_BYTES)
    )
    return FetchRequest(
        max_wait=milliseconds(_FETCH_WAIT_MS),
        min_bytes=i32(1),
        topics=(FetchTopic(topic_id=topic_id, partitions=(wanted,)),),
        forgotten_topics_data=(),
    )

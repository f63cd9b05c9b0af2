"""Writes audit events to the topic `__audit_log`, if configured.

The topic has one partition and a bounded size. Events that cannot be written in time are dropped
and counted; the log lines are written in any case.
"""

import asyncio
import logging
from typing import Final

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
)
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.coordination.record_routes import RecordRoutes, create_topic
from ottla.network.audit_config import AUDIT_TOPIC_ENABLE, AUDIT_TOPIC_RETENTION_BYTES
from ottla.node.audit import AuditLog
from ottla.node.node_parts import Parts
from ottla.protocol.errors import ApiError
from ottla.protocol.topics import TopicPartition
from ottla.records.builder import build_batch
from ottla.runtime.controller import Controller
from ottla.security.audit import REPEATS_MS

logger = logging.getLogger(__name__)

AUDIT_TOPIC: Final = "__audit_log"
EVENTS_PER_BATCH: Final = 1_000
_WRITE_INTERVAL_S: Final = 0.5
_FAILURE_LINES_S: Final = 60.0
_REPLICAS: Final = 3


def start_audit(parts: Parts, controller: Controller) -> None:
    """From now on changes are audited as well."""
    audit = parts.audit
    if audit is None:
        return
    controller.on_called = audit.on_called
    writer = None
    if parts.values[AUDIT_TOPIC_ENABLE]:
        ask, image = parts.brokers.asking("audit"), parts.feed.image
        routes = RecordRoutes(parts.node_id, parts.replicas, image, ask, parts.process)
        writer = _TopicWriter(audit, routes, parts, controller)
    parts.process.supervisor.start("audit", _keep_reporting(audit, writer))


async def _keep_reporting(audit: AuditLog, writer: "_TopicWriter | None") -> None:
    interval_s = _WRITE_INTERVAL_S if writer else REPEATS_MS / 1000
    slept_s = 0.0
    while True:
        await asyncio.sleep(interval_s)
        slept_s += interval_s
        if slept_s >= REPEATS_MS / 1000:
            slept_s = 0.0
            audit.settle()
        if writer is not None:
            await writer.write()


class _TopicWriter:
    def __init__(
        self, audit: AuditLog, routes: RecordRoutes, parts: Parts, controller: Controller
    ) -> None:
        self._audit = audit
        self._waiting = audit.queue_for_topic()
        self._routes = routes
        self._image = parts.feed.image
        self._loop = parts.process.loop
        self._controller = controller
        self._retention_bytes = parts.values[AUDIT_TOPIC_RETENTION_BYTES]
        self._quiet_until_s = 0.0

    async def write(self) -> None:
        """A batch that cannot be written is retried, until newer events displace it."""
        while self._waiting:
            records = [self._waiting[i] for i in range(min(len(self._waiting), EVENTS_PER_BATCH))]
            try:
                if self._image.partition_count(AUDIT_TOPIC) is None:
                    await self._create()
                await self._routes.append(TopicPartition(AUDIT_TOPIC, 0), build_batch(records))
            except ApiError as error:
                self._report(error)
                return
            written = set(map(id, records))
            while self._waiting and id(self._waiting[0]) in written:
                self._waiting.popleft()

    def _report(self, error: ApiError) -> None:
        if self._loop.time() >= self._quiet_until_s:
            self._quiet_until_s = self._loop.time() + _FAILURE_LINES_S
            logger.warning(
                "%d events wait to be written to %s, %d were dropped: %s",
                len(self._waiting),
                AUDIT_TOPIC,
                self._audit.dropped,
                error,
            )

    async def _create(self) -> None:
        brokers = len(self._image.active_brokers())
        configs = {"retention.bytes": str(self._retention_bytes), "cleanup.policy": "delete"}
        topic = CreatableTopic(
            name=TopicName(AUDIT_TOPIC),
            num_partitions=i32(1),
            replication_factor=i16(max(1, min(_REPLICAS, brokers))),
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=key, value=configs[key]) for key in configs),
        )
        await create_topic(self._controller, topic)

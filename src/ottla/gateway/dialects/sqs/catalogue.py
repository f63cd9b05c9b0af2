"""Queues and what is known about them.

Every topic is a queue; the share group `sqs.<queue>` hands out its messages. Settings that topics
and groups have configs for are kept there (retention, delivery limit, dead-letter topic), the rest
in a compacted topic: attributes, tags, times. An entry belongs to the topic with its id; a topic
recreated by someone else starts with the defaults.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.configs import ResourceType
from ottla.client.wire.errors import BrokerError
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.dialects.sqs.attributes import (
    RedrivePolicy,
    different_attribute,
    is_fifo,
    redrive_policy,
    validate_attributes,
    validate_queue_name,
    with_defaults,
)
from ottla.gateway.dialects.sqs.errors import SqsError, no_queue
from ottla.protocol.errors import ErrorCode

TOPIC: Final = "__gateway_sqs"
GROUP_PREFIX: Final = "sqs."
HIDDEN_PREFIX: Final = "__"  # The cluster's own topics are not queues.

_NO_TOPIC: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)
_AGE_S_MAX: Final = 2.0  # How long senders may miss another gateway's change.
_DELIVERIES: Final = "share.delivery.attempts.max"
_NO_LIMIT: Final = -1
_ORDER: Final = "share.record.order"
_DELIVERIES_MAX_OF_KAFKA: Final = 10
_DELIVERIES_MIN_OF_KAFKA: Final = 2
_TOPIC_CONFIG: Final = {"delivery.delay.enable": "true", "max.message.bytes": "2097152"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    name: str
    topic_id: UUID | None = None
    given: Mapping[str, str] = field(default_factory=dict)  # Attributes that were set.
    tags: Mapping[str, str] = field(default_factory=dict)
    created_s: int = 0
    modified_s: int = 0
    attributes: Mapping[str, str] = field(init=False)  # Including the defaults.
    redrive: RedrivePolicy | None = field(init=False)
    delay_s: int = field(init=False)
    visibility_timeout_s: int = field(init=False)
    wait_s: int = field(init=False)
    message_bytes_max: int = field(init=False)

    def __post_init__(self) -> None:
        found = with_defaults(self.name, self.given)
        policy = found.get("RedrivePolicy")
        derived = {
            "attributes": found,
            "redrive": None if policy is None else redrive_policy(policy),
            "delay_s": int(found["DelaySeconds"]),
            "visibility_timeout_s": int(found["VisibilityTimeout"]),
            "wait_s": int(found["ReceiveMessageWaitTimeSeconds"]),
            "message_bytes_max": int(found["MaximumMessageSize"]),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def group(self) -> str:
        return GROUP_PREFIX + self.name

    @property
    def is_fifo(self) -> bool:
        return is_fifo(self.name)


class Catalogue:
    def __init__(self, cluster: Cluster, administration: Administration) -> None:
        self._cluster = cluster
        self._administration = administration
        self._table = CompactedTable(cluster, TOPIC)
        self._parsed: dict[str, tuple[bytes | None, Queue]] = {}  # With the content parsed.
        self._configured: dict[str, Queue] = {}  # Queues whose group is configured.

    # Reading.

    async def get(self, name: str, *, fresh: bool = False) -> Queue:
        """`fresh`: include every gateway's changes up to this call."""
        await self._table.refresh(0.0 if fresh else _AGE_S_MAX)
        if fresh:
            self._cluster.forget_metadata()
        topic_id = await self._topic_id(name)
        content = self._table.get(name)
        known = self._parsed.get(name)
        if known is None or known[0] is not content or known[1].topic_id != topic_id:
            known = content, _parsed(name, topic_id, content)
            self._parsed[name] = known
        return known[1]

    async def names(self) -> list[str]:
        return sorted(
            topic.name
            for topic in await self._administration.topics()
            if not topic.is_internal and not topic.name.startswith(HIDDEN_PREFIX)
        )

    async def sources_of(self, dead_letter_queue: str) -> list[str]:
        """The queues whose dead letters go to this one."""
        await self._table.refresh()
        found = []
        for name in await self.names():
            queue = await self.get(name)
            if queue.redrive is not None and queue.redrive.dead_letter_queue == dead_letter_queue:
                found.append(name)
        return found

    async def _topic_id(self, name: str) -> UUID | None:
        if name.startswith(HIDDEN_PREFIX):
            raise no_queue()
        try:
            return (await self._cluster.topic(name)).id
        except BrokerError as error:
            if error.code in _NO_TOPIC:
                raise no_queue() from None
            raise

    # Changing.

    async def create(
        self, name: str, attributes: Mapping[str, str], tags: Mapping[str, str]
    ) -> Queue:
        """The queue as it is now; an existing one must have the requested attributes."""
        validate_queue_name(name)
        validate_attributes(name, attributes, at_creation=True)
        await self._validate_dead_letter_queue(name, attributes)
        try:
            existing = await self.get(name, fresh=True)
        except SqsError:
            existing = await self._make(name, attributes, tags)
        different = different_attribute(name, existing.given, attributes)
        if different is not None:
            raise SqsError(
                "QueueNameExists",
                "A queue already exists with the same name and a different value for attribute"
                f" {different}",
            )
        return existing

    async def _make(
        self, name: str, attributes: Mapping[str, str], tags: Mapping[str, str]
    ) -> Queue:
        queue = Queue(name=name, given=attributes)
        await self._create_topic(name, {"retention.ms": _retention_ms(queue)})
        now_s = int(time.time())
        queue = Queue(
            name=name,
            topic_id=await self._topic_id(name),
            given=attributes,
            tags=tags,
            created_s=now_s,
            modified_s=now_s,
        )
        await self._configure_group(queue)
        await self._write(queue)
        return queue

    async def _create_topic(self, name: str, config: Mapping[str, str]) -> None:
        try:
            await self._administration.create_topic(name, configs={**_TOPIC_CONFIG, **config})
        except BrokerError as error:
            if error.code is ErrorCode.topic_already_exists:  # Another caller created it first.
                return
            if error.code is not ErrorCode.invalid_config:
                raise
            # Brokers without delayed delivery.
            await self._administration.create_topic(name, configs=config)

    async def set_attributes(self, name: str, attributes: Mapping[str, str]) -> None:
        validate_attributes(name, attributes, at_creation=False)
        await self._validate_dead_letter_queue(name, attributes)
        before = await self.get(name, fresh=True)
        queue = _changed(before, given={**before.given, **attributes})
        if "MessageRetentionPeriod" in attributes:
            await self._administration.alter_configs(
                ResourceType.TOPIC, name, {"retention.ms": _retention_ms(queue)}
            )
        await self._configure_group(queue)
        await self._write(queue)

    async def set_tags(self, name: str, tags: Mapping[str, str | None]) -> None:
        """None removes a tag."""
        before = await self.get(name, fresh=True)
        merged = {**before.tags, **tags}
        kept = {key: value for key, value in merged.items() if value is not None}
        await self._write(_changed(before, tags=kept))

    async def delete(self, name: str) -> None:
        await self.get(name, fresh=True)
        await self._administration.delete_topic(name)
        if self._table.get(name) is not None:
            await self._table.put(name, None)
        self._parsed.pop(name, None)
        self._configured.pop(name, None)

    async def configure(self, queue: Queue) -> None:
        """Called before receiving: topics created by Kafka clients have no configured group yet."""
        known = self._configured.get(queue.name)
        if known is not queue and known != queue:
            await self._configure_group(queue)

    async def _validate_dead_letter_queue(self, name: str, attributes: Mapping[str, str]) -> None:
        policy = attributes.get("RedrivePolicy")
        if not policy:
            return
        target = redrive_policy(policy).dead_letter_queue
        try:
            await self.get(target)
        except SqsError:
            raise SqsError(
                "InvalidParameterValueException",
                f"Value {policy} for parameter RedrivePolicy is invalid. Reason: Dead letter"
                " target does not exist.",
            ) from None
        if is_fifo(target) != is_fifo(name):
            raise SqsError(
                "InvalidParameterValueException",
                f"Value {policy} for parameter RedrivePolicy is invalid. Reason: Dead letter queue"
                " must be same type of queue as the source.",
            )

    async def _configure_group(self, queue: Queue) -> None:
        """Other brokers than Ottla's have a lower delivery limit; receivers check it too."""
        redrive = queue.redrive
        limit = _NO_LIMIT if redrive is None else redrive.receive_count_max
        values: dict[str, str | None] = {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": "read_committed" if queue.is_fifo else None,
            _DELIVERIES: str(limit),
            _ORDER: "key" if queue.is_fifo else None,
            "errors.deadletterqueue.topic.name": (
                None if redrive is None else redrive.dead_letter_queue
            ),
        }
        try:
            await self._administration.alter_configs(ResourceType.GROUP, queue.group, values)
        except BrokerError as error:
            if error.code is not ErrorCode.invalid_config:
                raise
            if queue.is_fifo:
                raise SqsError(
                    "UnsupportedOperation",
                    "These brokers do not keep the order of message groups.",
                ) from None
            del values[_DELIVERIES], values[_ORDER]
            most, least = _DELIVERIES_MAX_OF_KAFKA, _DELIVERIES_MIN_OF_KAFKA
            within = most if redrive is None else max(least, min(limit, most))
            values["share.delivery.count.limit"] = str(within)
            await self._administration.alter_configs(ResourceType.GROUP, queue.group, values)
        self._configured[queue.name] = queue

    async def _write(self, queue: Queue) -> None:
        document = {
            "topic_id": str(queue.topic_id),
            "attributes": dict(queue.given),
            "tags": dict(queue.tags),
            "created_s": queue.created_s,
            "modified_s": queue.modified_s,
        }
        await self._table.put(queue.name, json.dumps(document).encode())


def _changed(queue: Queue, **changes: Any) -> Queue:
    return replace(queue, modified_s=int(time.time()), **changes)


def _parsed(name: str, topic_id: UUID | None, content: bytes | None) -> Queue:
    document: dict[str, Any] = {} if content is None else json.loads(content)
    if document.get("topic_id") != str(topic_id):
        return Queue(name=name, topic_id=topic_id)
    return Queue(
        name=name,
        topic_id=topic_id,
        given=document["attributes"],
        tags=document["tags"],
        created_s=document["created_s"],
        modified_s=document["modified_s"],
    )


def _retention_ms(queue: Queue) -> str:
    return str(int(queue.attributes["MessageRetentionPeriod"]) * 1000)

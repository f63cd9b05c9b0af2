"""Operations on share-group deliveries that Ottla supports and librdkafka does not: release with a
delay, and extend the lock.

They use connections of their own. The broker identifies a delivery by its member id, which
librdkafka does not expose; it is looked up in the group by the consumer's unique client id.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.types import GroupId
from kio.static.primitive import i8, i16, i32, i64

from ottla.client.messages import Message
from ottla.client.wire.cluster import Cluster, CoordinatorType, TopicPartition, expect_one
from ottla.client.wire.errors import validate_answer
from ottla.client.wire.librdkafka_settings import security_of
from ottla.protocol.messages.delivery_acknowledge import (
    AcknowledgedGroup,
    AcknowledgedPartition,
    AcknowledgedTopic,
    Delivery,
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeType,
)


class ShareDeliveries:
    """For one consumer, used only by its thread. Raises the wire client's errors."""

    def __init__(self, settings: Mapping[str, Any], group_id: str) -> None:
        """`settings` are the consumer's librdkafka settings."""
        self._group_id = group_id
        self._client_id = settings["client.id"]
        self._cluster = Cluster(settings["bootstrap.servers"], security=security_of(settings))
        self._holder = ""

    def release(self, message: Message, delay_s: float) -> None:
        """Release the message; it is delivered again after `delay_s` seconds at the earliest."""
        self._send([message], DeliveryAcknowledgeType.RELEASE, delay_ms=round(delay_s * 1000))

    def renew(self, messages: Iterable[Message], lock_s: float) -> None:
        """Lock the messages for this consumer for so many seconds from now."""
        self._send(messages, DeliveryAcknowledgeType.RENEW, lock_ms=round(lock_s * 1000))

    def close(self) -> None:
        self._cluster.close()

    def _send(
        self,
        messages: Iterable[Message],
        kind: DeliveryAcknowledgeType,
        *,
        delay_ms: int = 0,
        lock_ms: int = 0,
    ) -> None:
        by_partition: dict[TopicPartition, list[Delivery]] = {}
        for message in messages:
            delivery = Delivery(
                first_offset=i64(message.offset),
                last_offset=i64(message.offset),
                holder=self._find_holder(),
                delivery_count=i16(message.delivery_count),
                type=i8(kind),
                delay_ms=i64(delay_ms),
                lock_ms=i64(lock_ms),
            )
            topic_partition = TopicPartition(message.topic, message.partition)
            by_partition.setdefault(topic_partition, []).append(delivery)
        for topic_partition, deliveries in by_partition.items():
            self._cluster.retry(partial(self._tell, topic_partition, deliveries))

    def _tell(self, topic_partition: TopicPartition, deliveries: list[Delivery]) -> None:
        partition = AcknowledgedPartition(
            partition_index=i32(topic_partition.partition), deliveries=tuple(deliveries)
        )
        topic = AcknowledgedTopic(
            topic_id=self._cluster.topic(topic_partition.topic).id, partitions=(partition,)
        )
        group = AcknowledgedGroup(group_id=GroupId(self._group_id), topics=(topic,))
        response = self._cluster.leader(topic_partition).call(
            DeliveryAcknowledgeRequest(groups=(group,))
        )
        answer = expect_one(expect_one(expect_one(response.groups).topics).partitions)
        validate_answer(answer.error_code, f"deliveries of {topic_partition}")
        for result in answer.deliveries:
            validate_answer(result.error_code, f"a delivery of {topic_partition}")

    def _find_holder(self) -> str:
        if not self._holder:
            self._holder = self._cluster.retry(self._ask_holder)
        return self._holder

    def _ask_holder(self) -> str:
        request = ShareGroupDescribeRequest(
            group_ids=(GroupId(self._group_id),), include_authorized_operations=False
        )
        coordinator = self._cluster.coordinator(CoordinatorType.GROUP, self._group_id)
        group = expect_one(coordinator.call(request).groups)
        validate_answer(group.error_code, f"group {self._group_id}")
        for member in group.members:
            if member.client_id == self._client_id:
                return str(member.member_id)
        raise LookupError(f"the consumer is no longer a member of group {self._group_id}")

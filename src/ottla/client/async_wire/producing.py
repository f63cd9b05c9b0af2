"""Write record batches."""

from collections.abc import Mapping
from typing import NamedTuple

from kio.schema.produce.v13.request import PartitionProduceData
from kio.static.primitive import i16, i32

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import TopicPartition, expect_one
from ottla.client.wire.errors import validate_answer
from ottla.client.wire.producing import (
    Producer,
    produce_request,
    producer_id_request,
    written_offsets,
)
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds

_NO_ACKS = 0


class Appended(NamedTuple):
    base_offset: int
    append_time_ms: int | None  # None unless the broker sets the time.


async def init_producer(cluster: Cluster) -> Producer:
    """A new idempotent producer without transactions."""

    async def init() -> Producer:
        response = await (await cluster.any_broker()).call(producer_id_request())
        validate_answer(response.error_code, "a producer id")
        return Producer(response.producer_id, response.producer_epoch)

    return await cluster.retry(init)


async def produce(
    cluster: Cluster,
    batches: Mapping[TopicPartition, bytes | bytearray],
    transactional_id: str | None = None,
) -> dict[TopicPartition, int]:
    """Write one batch to each partition, acknowledged by all in-sync replicas; the base offsets.

    Retries until acknowledged, so only an idempotent producer's batches are written exactly once.
    """
    return await cluster.ask_leaders(
        batches, lambda asked: produce_request(asked, transactional_id), written_offsets
    )


async def produce_batch(
    cluster: Cluster,
    topic_partition: TopicPartition,
    batch: bytearray,
    *,
    acks: int,
    timeout_ms: int,
) -> Appended | None:
    """One attempt to write one batch; None with acks=0, which is not answered."""
    topic = await cluster.topic(topic_partition.topic)
    data = PartitionProduceData(index=i32(topic_partition.partition), records=batch)  # type: ignore[arg-type]
    request = ProduceRequest(
        transactional_id=None,
        acks=i16(acks),
        timeout=milliseconds(timeout_ms),
        topic_data=(
            TopicProduceData(name=topic_partition.topic, topic_id=topic.id, partition_data=(data,)),
        ),
    )
    connection = await cluster.leader(topic_partition)
    if acks == _NO_ACKS:
        await connection.send(request)
        return None
    response = await connection.call(request)
    answer = expect_one(expect_one(response.responses).partition_responses)
    what = f"write to partition {topic_partition}"
    validate_answer(answer.error_code, what, answer.error_message)
    time = answer.log_append_time
    return Appended(answer.base_offset, None if time is None else int(time.timestamp() * 1000))

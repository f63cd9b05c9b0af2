"""Writes one batch to one partition, acknowledged by all in-sync replicas.

For the gateway's own occasional writes; publishers have a producer. A batch is resent until it is
acknowledged, so it may be written twice.
"""

from collections.abc import Sequence
from typing import Final

from kio.schema.produce.v13.request import PartitionProduceData
from kio.static.primitive import Records, i16, i32

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import TopicPartition, expect_one
from ottla.client.wire.errors import validate_answer
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds
from ottla.records.builder import Record, build_batch

_ACKS_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000


async def write(
    cluster: Cluster, topic_partition: TopicPartition, records: Sequence[Record]
) -> int:
    """Returns the offset of the first record."""
    data = PartitionProduceData(
        index=i32(topic_partition.partition), records=Records(bytes(build_batch(records)))
    )

    async def produce() -> int:
        topic = await cluster.topic(topic_partition.topic)
        written = TopicProduceData(
            name=topic_partition.topic, topic_id=topic.id, partition_data=(data,)
        )
        request = ProduceRequest(
            transactional_id=None,
            acks=i16(_ACKS_ALL),
            timeout=milliseconds(_TIMEOUT_MS),
            topic_data=(written,),
        )
        response = await (await cluster.leader(topic_partition)).call(request)
        answer = expect_one(expect_one(response.responses).partition_responses)
        validate_answer(answer.error_code, f"write to partition {topic_partition}")
        return int(answer.base_offset)

    return await cluster.retry(produce)

"""A client that changes topics."""

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.testing.simulator.clients.client import Client, Unavailable, check

CREATE_TOPICS = 19
TIMEOUT_MS = 5_000


async def create_topic(
    client: Client, name: str, *, partitions_count: int, replication_factor: int
) -> None:
    """Returns when it is there, however long that takes."""
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions_count),
        replication_factor=i16(replication_factor),
        assignments=(),
        configs=(),
    )
    request = CreateTopicsRequest(
        topics=(topic,), timeout=milliseconds(TIMEOUT_MS), validate_only=False
    )
    while True:
        try:
            response = await client.call_any(CREATE_TOPICS, 7, request)
            (created,) = response.topics
            if created.error_code is not ErrorCode.topic_already_exists:
                check(created.error_code)
        except Unavailable:
            await client.back_off()
        else:
            client.tell(f"created {name}")
            return

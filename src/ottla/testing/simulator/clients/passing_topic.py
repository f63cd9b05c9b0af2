"""A topic that is made, written, read and deleted; one of the same name may have been before it.

It has exactly what was written to it, and nothing of the topic before. All goes by topic ids: by
the name, a broker that is behind may still serve the topic before.
"""

from collections.abc import Sequence
from typing import Final

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, History
from ottla.testing.simulator.clients.admin import Admin
from ottla.testing.simulator.clients.client import Client
from ottla.testing.simulator.clients.producer import Producer
from ottla.testing.simulator.clients.reader import Fetcher
from ottla.testing.simulator.events import Event, Sent, name_of
from ottla.testing.simulator.violation import Violation

ROUNDS: Final = 3
PRODUCE_BY_ID: Final = 13
FETCH_BY_ID: Final = 18


class _Writes(Checker):
    """Hears what is written."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def on(self, event: Event) -> None:
        if isinstance(event, Sent):
            self.values.append(event.value)


async def pass_topic(admin: Admin, topic: str, replication_factor: int) -> None:
    """From beginning to end, however long that takes."""
    client, partition = admin.client, TopicPartition(topic, 0)
    await admin.until_done(
        lambda: admin.create_topic(topic, partitions_count=1, replication_factor=replication_factor)
    )
    writes = _Writes()
    producer = Producer(
        client,
        History([writes]),
        partition,
        idempotent=True,
        pause_s=0.05,
        version=PRODUCE_BY_ID,
    )
    await producer.produce(rounds=ROUNDS)
    await _read(client, partition, writes.values)
    topic_id = client.topic_ids[topic]
    await admin.until_done(lambda: admin.delete_topic(topic_id))
    client.deleted_topic_ids.add(topic_id)
    client.forget_topic(topic)


async def _read(client: Client, partition: TopicPartition, written: Sequence[bytes]) -> None:
    """All of it; a new leader may not know at once that it is committed."""
    fetcher = Fetcher(client, partition, committed=False, version=FETCH_BY_ID)
    values: list[bytes] = []
    while len(values) < len(written) or fetcher.end_offset != fetcher.offset:
        values += [record.value for record in await fetcher.poll(wait_ms=0)]
        if values != list(written[: len(values)]):
            raise Violation(
                f"{partition.topic} has {list(map(name_of, values))}, "
                f"but {list(map(name_of, written))} was written"
            )

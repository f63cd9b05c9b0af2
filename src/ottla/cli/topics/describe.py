"""`ottla topics describe`: partitions, leaders, replicas, offsets and damage."""

from typing import Any

import confluent_kafka
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.damaged_replicas import DamagedReplicas, read_damage
from ottla.cli.errors import UsageError
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, TopicNames
from ottla.protocol.topics import TopicPartition

COLUMNS = ("partition", "leader", "replicas", "isr", "start_offset", "end_offset")


def describe(
    topics: TopicNames,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show partitions, offsets and replicas."""
    if not topics:
        raise UsageError("name at least one topic; `ottla topics list` shows them")
    admin = connection.admin()
    futures = admin.describe_topics(TopicCollection(topics))
    found = [connection.result(futures[name], of=name) for name in topics]
    with bootstrap_broker(connection) as broker:
        damage = read_damage(broker)
    documents = [_document(connection, admin, topic, damage) for topic in found]
    if as_json:
        print_json(documents)
        return
    for number, document in enumerate(documents):
        if number:
            print_line("")
        internal = "  internal" if document["internal"] else ""
        print_line(f"{document['topic']}  id {document['id']}{internal}")
        print_rows(COLUMNS, document["partitions"])
        for partition in document["partitions"]:
            for stretch in damage.get(
                TopicPartition(document["topic"], partition["partition"]), ()
            ):
                print_line(f"partition {partition['partition']} is {stretch}")


def _document(
    connection: Connection, admin: AdminClient, topic: TopicDescription, damage: DamagedReplicas
) -> dict[str, Any]:
    starts = _offsets(connection, admin, topic, OffsetSpec.earliest())
    ends = _offsets(connection, admin, topic, OffsetSpec.latest())
    return {
        "topic": topic.name,
        "id": str(topic.topic_id),
        "internal": topic.is_internal,
        "partitions": [
            {
                "partition": partition.id,
                "leader": partition.leader.id if partition.leader else None,
                "replicas": [node.id for node in partition.replicas],
                "isr": [node.id for node in partition.isr],
                "start_offset": starts.get(partition.id),
                "end_offset": ends.get(partition.id),
                "damage": [
                    stretch._asdict()
                    for stretch in damage.get(TopicPartition(topic.name, partition.id), ())
                ],
            }
            for partition in topic.partitions
        ],
    }


def _offsets(
    connection: Connection, admin: AdminClient, topic: TopicDescription, spec: OffsetSpec
) -> dict[int, int]:
    """Offsets by partition; a partition without a leader has none."""
    wanted = {
        confluent_kafka.TopicPartition(topic.name, partition.id): spec
        for partition in topic.partitions
        if partition.leader
    }
    futures = admin.list_offsets(wanted) if wanted else {}
    return {
        topic_partition.partition: connection.result(future).offset
        for topic_partition, future in futures.items()
    }

"""`ottla topics describe`: partitions, leaders, replicas, offsets and damage."""

from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.damaged_replicas import DamagedReplicas, read_damage
from ottla.cli.errors import UsageError
from ottla.cli.groups.group_offsets import partition_offsets
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
    partitions = {TopicPartition(topic.name, each.id): each for each in topic.partitions}
    led = [topic_partition for topic_partition, each in partitions.items() if each.leader]
    starts = partition_offsets(connection, admin, led, OffsetSpec.earliest())
    ends = partition_offsets(connection, admin, led, OffsetSpec.latest())
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
                "start_offset": starts.get(topic_partition),
                "end_offset": ends.get(topic_partition),
                "damage": [stretch._asdict() for stretch in damage.get(topic_partition, ())],
            }
            for topic_partition, partition in partitions.items()
        ],
    }

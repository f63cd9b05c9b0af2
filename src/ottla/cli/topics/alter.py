"""`ottla topics alter`: add partitions to a topic."""

from confluent_kafka.admin import NewPartitions

from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection
from ottla.cli.output import print_outcome
from ottla.cli.parameters import AsJson, validate_positive


def alter(
    topic: str,
    /,
    *,
    partitions: int,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Add partitions to a topic.

    Args:
        topic: Name of the topic.
        partitions: Total number of partitions; it can only grow.
    """
    validate_positive("--partitions", partitions)
    admin = connection.admin()
    wanted = NewPartitions(topic, partitions)
    futures = admin.create_partitions([wanted], operation_timeout=TIMEOUT_S)
    connection.result(futures[topic])
    text = f"topic {topic} now has {partitions} partitions"
    print_outcome({"topic": topic, "partitions": partitions}, text, as_json=as_json)

"""`ottla topics create`: create a topic."""

from confluent_kafka import KafkaError
from confluent_kafka.admin import NewTopic

from ottla.cli.assignments import parse_assignments
from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection
from ottla.cli.output import print_outcome
from ottla.cli.parameters import AsJson, Flag, validate_positive

BROKER_DEFAULT = -1


def create(
    topic: str,
    /,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    config: list[str] | None = None,
    if_not_exists: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Create a topic.

    Args:
        topic: Name of the topic.
        partitions: Number of partitions; by default the broker's num.partitions.
        replication_factor: Number of replicas; by default the broker's default.replication.factor.
        config: Topic config as KEY=VALUE; may be repeated.
        if_not_exists: Succeed if the topic already exists.
    """
    validate_positive("--partitions", partitions)
    validate_positive("--replication-factor", replication_factor)
    new_topic = NewTopic(
        topic,
        num_partitions=partitions or BROKER_DEFAULT,
        replication_factor=replication_factor or BROKER_DEFAULT,
        config=parse_assignments("--config", config or []),
    )
    admin = connection.admin()
    futures = admin.create_topics([new_topic], operation_timeout=TIMEOUT_S)
    tolerated = KafkaError.TOPIC_ALREADY_EXISTS if if_not_exists else None
    created = connection.succeeds(futures[topic], unless=tolerated)
    text = f"created topic {topic}" if created else f"topic {topic} already exists"
    print_outcome({"topic": topic, "created": created}, text, as_json=as_json)

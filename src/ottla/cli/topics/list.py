"""`ottla topics list`: names, partitions and replicas of the topics."""

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson, Flag
from ottla.protocol.topics import INTERNAL_TOPICS


def list_topics(
    *,
    internal: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """List the topics.

    Args:
        internal: Also list the topics in which brokers keep their own state.
    """
    metadata = connection.metadata()
    rows = [
        {
            "topic": name,
            "partitions": len(topic.partitions),
            "replication_factor": max(
                (len(p.replicas) for p in topic.partitions.values()), default=0
            ),
        }
        for name, topic in sorted(metadata.topics.items())
        if internal or name not in INTERNAL_TOPICS
    ]
    print_listing(("topic", "partitions", "replication_factor"), rows, as_json=as_json)

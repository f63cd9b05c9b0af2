"""`ottla topics delete`: delete topics with all their records."""

from confluent_kafka import KafkaError

from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_outcome
from ottla.cli.parameters import AsJson, Flag, TopicNames


def delete(
    topics: TopicNames,
    /,
    *,
    if_exists: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Delete topics with all their records.

    Args:
        if_exists: Succeed if a topic does not exist.
    """
    if not topics:
        raise UsageError("name at least one topic; `ottla topics list` shows them")
    admin = connection.admin()
    futures = admin.delete_topics(topics, operation_timeout=TIMEOUT_S)
    tolerated = KafkaError.UNKNOWN_TOPIC_OR_PART if if_exists else None
    outcomes, lines, failures = [], [], []
    for topic in topics:
        try:
            deleted = connection.succeeds(futures[topic], unless=tolerated, of=topic)
            outcomes.append({"topic": topic, "deleted": deleted})
            lines.append(f"deleted topic {topic}" if deleted else f"topic {topic} does not exist")
        except CommandError as failure:
            failures.append(failure)
    print_outcome(outcomes, *lines, as_json=as_json)
    if failures:
        raise failures[0]

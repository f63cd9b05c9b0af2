"""`ottla topics elect-leaders`: the preferred replica of each partition leads it again."""

from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.broker_call import BrokerCall, bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import ManyErrors
from ottla.cli.output import print_line, some
from ottla.cli.reassignment import elect_preferred
from ottla.cli.topic_lookup import no_topic
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition

SHOWN_MAX = 5  # Partitions of a line.


def elect_leaders(
    topics: Annotated[list[str] | None, Parameter(name="topic")] = None,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Elect the preferred leader of each partition, where it is in sync.

    Args:
        topics: Names of topics; without any, all of them.
    """
    with bootstrap_broker(connection) as broker:
        partitions = broker.partitions()
        for topic in topics or ():
            if not any(topic_partition.topic == topic for topic_partition in partitions):
                raise no_topic(topic)
        wanted = [
            topic_partition
            for topic_partition, state in partitions.items()
            if state.leader_id != state.replica_nodes[0]
            and (not topics or topic_partition.topic in topics)
        ]
        if not wanted:
            connection.check_nodes(tolerates_few=True)  # Or what is known may be old.
        failures = _elect(broker, wanted) if wanted else {}
    print_line(f"{len(wanted) - len(failures)} partitions have a new leader")
    if failures:
        raise ManyErrors(summarise(failures))


def _elect(broker: BrokerCall, topic_partitions: list[TopicPartition]) -> dict[str, str]:
    """By partition, what went wrong."""
    response = elect_preferred(broker, topic_partitions)
    return {
        f"{topic.topic}-{result.partition_id}": result.error_message or result.error_code.name
        for topic in response.replica_election_results
        for result in topic.partition_result
        if result.error_code not in (ErrorCode.none, ErrorCode.election_not_needed)
    }


def summarise(failures: Mapping[str, str]) -> list[str]:
    """A line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for partition, reason in failures.items():
        by_reason.setdefault(reason, []).append(partition)
    return [f"{some(partitions, SHOWN_MAX)}: {reason}" for reason, partitions in by_reason.items()]

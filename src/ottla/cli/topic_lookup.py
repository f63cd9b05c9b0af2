"""One topic as a broker knows it, without waiting as librdkafka does for one that may appear."""

from collections.abc import Collection, Sequence

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import metadata_request
from ottla.protocol.errors import ErrorCode


def partition_count(broker: BrokerCall, topic: str) -> int | None:
    """None when there is no such topic."""
    return _ask(broker, topic, create=False)


def create_by_default(broker: BrokerCall, topic: str) -> int | None:
    """Let the broker create the topic as for any client; None when it does not do that."""
    return _ask(broker, topic, create=True)


def _ask(broker: BrokerCall, topic: str, *, create: bool) -> int | None:
    (found,) = broker.call(metadata_request([topic], create_missing=create)).topics
    if found.error_code is ErrorCode.unknown_topic_or_partition:
        return None
    if found.error_code is ErrorCode.leader_not_available:  # It is being created.
        return len(found.partitions)
    check(found.error_code, topic)
    return len(found.partitions)


def no_topic(name: str) -> CommandError:
    return CommandError(f"there is no topic {name}; `ottla topics list` shows the topics")


def chosen_partitions(
    topic: str, existing: Collection[int], wanted: Sequence[int] | None
) -> Sequence[int]:
    """The wanted ones, which must be there; all if none are named."""
    for index in wanted or ():
        if index not in existing:
            raise CommandError(f"{topic} has no partition {index}; it has {len(existing)}, from 0")
    return wanted or sorted(existing)

"""Which partitions a read covers."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from ottla.client.wire.cluster import Cluster, Topic, TopicPartition
from pyspark_ottla.options import OptionError, OptionValues

NAMES = ("subscribe", "subscribePattern", "assign")


class UnknownPartition(Exception):
    """A topic or partition requested by name does not exist."""


@dataclass(frozen=True)
class Subscription:
    """Exactly one of the three is given."""

    topics: Collection[str] = ()
    pattern: str = ""
    partitions: Collection[TopicPartition] = ()

    def find_topics(self, cluster: Cluster) -> dict[str, Topic]:
        """As the cluster has them now; omits those that do not exist."""
        if self.pattern:
            matches = re.compile(self.pattern).fullmatch
            return {
                name: topic
                for name, topic in cluster.topics().items()
                if matches(name) and not topic.is_internal
            }
        return cluster.topics(self.topics or {partition.topic for partition in self.partitions})

    def find_partitions(self, cluster: Cluster) -> list[TopicPartition]:
        return self.partitions_of(self.find_topics(cluster))

    def partitions_of(self, topics: dict[str, Topic]) -> list[TopicPartition]:
        """The subscribed partitions, in order."""
        partitions = [
            TopicPartition(name, partition)
            for name, topic in topics.items()
            for partition in topic.leaders
        ]
        if self.partitions:
            partitions = [partition for partition in partitions if partition in self.partitions]
        return sorted(partitions)

    def validate_found(self, topics: dict[str, Topic]) -> None:
        """Raises UnknownPartition for a named partition or topic that does not exist."""
        missing = set(self.topics) - topics.keys()
        missing |= {
            str(partition) for partition in set(self.partitions) - set(self.partitions_of(topics))
        }
        if missing:
            names = ", ".join(sorted(missing))
            raise UnknownPartition(f"there is no topic or partition {names} in the cluster")


def parse_subscription(values: OptionValues) -> Subscription:
    name = values.one_of(NAMES)
    if name is None:
        raise OptionError(f"one of the options {', '.join(NAMES)} is missing")
    if name == "assign":
        return Subscription(partitions=tuple(values.topic_partitions(name)))
    text = values.text(name) or ""
    if name == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"option {name} is not a regular expression: {error}") from None
        return Subscription(pattern=text)
    return Subscription(topics=tuple(topic.strip() for topic in text.split(",") if topic.strip()))

"""What tests do with a broker, wherever it runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from ottla.client.messages import Message
from ottla.testing.topics import PATIENCE_S, Topics

BROKER_DEFAULT = -1


class BrokerAccess(ABC):
    """`topic_prefix` goes before the names that `topic` is given."""

    def __init__(self) -> None:
        self.topic_prefix = ""
        self._topics = Topics(lambda: self.bootstrap_servers)

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """As clients are configured: HOST:PORT, several separated by commas."""

    @property
    def client_config(self) -> dict[str, str]:
        """For the clients of confluent-kafka."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replication_factor: int = BROKER_DEFAULT,
    ) -> str:
        """Make the topic of this name and prefix, if it is not there; returns what it is called."""
        full_name = self.topic_prefix + name
        self._topics.create(full_name, partitions, config, replication_factor)
        return full_name

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True
    ) -> list[Message]:
        """The records that are there now, by partition and offset; of a missing topic none.

        With `committed` those of open and aborted transactions are left out.
        """
        return self._topics.records(topic, partition, committed=committed)

    def wait_for(
        self,
        topic: str,
        count: int,
        *,
        timeout_s: float = PATIENCE_S,
        where: Callable[[Message], bool] | None = None,
    ) -> list[Message]:
        """The records of the topic as soon as there are `count` of them for which `where` holds.

        Raises NotInTime, an AssertionError.
        """
        return self._topics.wait_for(topic, count, timeout_s=timeout_s, where=where)


class ExternalBroker(BrokerAccess):
    """One that somebody else has started."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._bootstrap_servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers

"""What tests do with a broker, wherever it runs."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.client.messages import Message

if TYPE_CHECKING:
    from ottla.client.wire.cluster import Cluster

BROKER_DEFAULT = -1
PATIENCE_S = 60.0
_PAUSE_S = 0.02


class NotInTime(AssertionError):
    """What a test has waited for did not come."""


class BrokerAccess(ABC):
    """`topic_prefix` goes before the names that `topic` is given."""

    def __init__(self) -> None:
        self.topic_prefix = ""

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
        from ottla.testing.topics import create_topic

        full_name = self.topic_prefix + name
        with self._cluster() as cluster:
            create_topic(cluster, full_name, partitions, config, replication_factor)
        return full_name

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True
    ) -> list[Message]:
        """The records that are there now, by partition and offset; of a missing topic none.

        With `committed` those of open and aborted transactions are left out.
        """
        from ottla.testing.topics import read_records

        with self._cluster() as cluster:
            return read_records(cluster, topic, partition, committed=committed)

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
        deadline = time.monotonic() + timeout_s
        while True:
            found = self.records(topic)
            if where is not None:
                found = [message for message in found if where(message)]
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise NotInTime(
                    f"{topic} has {len(found)} of {count} records after {timeout_s:g} s"
                )
            time.sleep(_PAUSE_S)

    def _cluster(self) -> "Cluster":
        from ottla.client.wire.cluster import Cluster

        return Cluster(self.bootstrap_servers, client_id="ottla-testing")


class ExternalBroker(BrokerAccess):
    """One that somebody else has started."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._bootstrap_servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers

"""What a test can do with a broker, wherever it runs."""

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
    """What a test waited for did not happen in time."""


class BrokerAccess(ABC):
    """`topic` puts `topic_prefix` before names."""

    def __init__(self) -> None:
        self.topic_prefix = ""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The client setting: HOST:PORT, or several separated by commas."""

    @property
    def client_config(self) -> dict[str, str]:
        """Settings for confluent-kafka clients."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replication_factor: int = BROKER_DEFAULT,
    ) -> str:
        """Create the topic if it does not exist; returns its name, with the prefix."""
        from ottla.testing.topics import create_topic

        full_name = self.topic_prefix + name
        with self._cluster() as cluster:
            create_topic(cluster, full_name, partitions, config, replication_factor)
        return full_name

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = True
    ) -> list[Message]:
        """The current records, by partition and offset; none if the topic does not exist.

        With `committed`, records of open and aborted transactions are left out.
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
        """Wait until the topic has `count` records that satisfy `where`, and return them.

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
    """A broker started by somebody else."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._bootstrap_servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers

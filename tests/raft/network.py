"""The simulated network: delays, loss, reordering, duplicates, one-way partitions.

A response reaches only the process that asked, not its successor, as over a connection. Requests
may reach a restarted receiver, late and more than once.
"""

from typing import TYPE_CHECKING

from ottla.raft import messages
from ottla.raft.messages import Message

if TYPE_CHECKING:
    from tests.raft.cluster import Cluster

_LIFE = 1_000_000  # More than the correlation ids of one life.
_REQUESTS = tuple(messages.Request.__args__)


class Network:
    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self.blocked: set[tuple[int, int]] = set()

    def send(self, message: Message) -> None:
        cluster, faults = self._cluster, self._cluster.faults
        if message.destination not in cluster.replicas:
            return
        if isinstance(message.body, _REQUESTS):
            life = cluster.replicas[message.source].life
            message = message._replace(correlation_id=message.correlation_id + life * _LIFE)
        copies = 2 if cluster.random.random() < faults.duplicate else 1
        for _ in range(copies):
            if cluster.random.random() >= faults.drop:
                delay_ms = cluster.random.uniform(0.1, faults.delay_ms_max)
                if cluster.random.random() < faults.late:
                    delay_ms *= 30
                cluster.after(delay_ms, lambda: self._deliver(message))

    def _deliver(self, message: Message) -> None:
        if (message.source, message.destination) in self.blocked:
            return
        receiver = self._cluster.replicas[message.destination]
        if not isinstance(message.body, _REQUESTS):
            life, correlation_id = divmod(message.correlation_id, _LIFE)
            if life != receiver.life:
                return
            message = message._replace(correlation_id=correlation_id)
        receiver.when_awake(lambda: receiver.step(message))

    def isolate(self, group: set[int], *, one_way: bool) -> None:
        others = set(self._cluster.replicas) - group
        for inside in group:
            for outside in others:
                self.blocked.add((inside, outside))
                if not one_way:
                    self.blocked.add((outside, inside))

    def heal(self) -> None:
        self.blocked.clear()

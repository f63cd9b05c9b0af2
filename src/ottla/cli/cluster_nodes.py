"""The nodes of a cluster, and the quorum of its metadata, as a broker tells of them."""

from typing import NamedTuple
from uuid import UUID


class Quorum(NamedTuple):
    leader: int
    voters: dict[int, UUID | None]  # The directory of each, by node.
    observers: set[int]

    def role(self, node_id: int) -> str | None:
        if node_id == self.leader:
            return "leader"
        if node_id in self.voters:
            return "voter"
        return "observer" if node_id in self.observers else None


class ClusterNode(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class NodeSettings(NamedTuple):
    """What a node says of itself."""

    version: str | None = None
    cordoned: bool = False  # It gets no new replicas.

"""The nodes of a run: those it starts with, those that join, those that leave."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.protocol.addresses import Address
from ottla.testing.simulator.simulated_node import SimulatedNode

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network


class Membership:
    """The first node begins the cluster; the others, and it when it has lost its disk, join."""

    def __init__(
        self, network: "Network", overrides: Mapping[str, str], count: int, quorum_size: int
    ) -> None:
        self.nodes: list[SimulatedNode] = []
        self.addresses: list[Address] = []  # Of the nodes, for clients.
        self._network = network
        self._overrides = overrides
        self._quorum_size = quorum_size
        self._last_id = 0
        for _ in range(count):
            self.add()

    def add(self) -> SimulatedNode:
        """One that was never there before; it is not started."""
        self._last_id += 1
        node = SimulatedNode(self._network, self._last_id, self._overrides, self._others)
        node.begins_cluster = self._last_id == 1
        self.nodes.append(node)
        self.addresses.append(node.address)
        return node

    def remove(self, node: SimulatedNode) -> None:
        """It has stopped, and nobody waits for it any more."""
        self.nodes.remove(node)
        self.addresses.remove(node.address)

    def _others(self, node: SimulatedNode) -> Sequence[Address]:
        return [address for address in self.addresses if address != node.address]

    @property
    def all_serve(self) -> bool:
        return all(node.serving for node in self.nodes)

    @property
    def is_whole(self) -> bool:
        """Every replica that there should be is in sync, and so is the quorum."""
        return next(self.missing(), None) is None

    @property
    def has_copies(self) -> bool:
        """Of every partition, so that one node can lose what it has."""
        return all(
            len(state.isr) > 1
            for node in self.nodes
            if node.node is not None
            for topic in node.node.image.topics.values()
            for state in topic.partitions.values()
        )

    def missing(self) -> Iterator[str]:
        """What keeps the cluster from being whole."""
        for node in self.nodes:
            if not node.serving or node.node is None:
                yield f"{node} does not serve"
            else:
                yield from _out_of_sync(node)
                yield from self._strangers(node)
                yield from self._wrong_quorum(node)
                yield from (f"{node} has a wrong bit in {flip}" for flip in node.damage)

    def _strangers(self, node: SimulatedNode) -> Iterator[str]:
        assert node.node is not None
        known = {broker.broker_id for broker in node.node.image.active_brokers()}
        members = {each.node_id for each in self.nodes}
        if known != members or members != set(node.node.image.brokers):
            yield f"{node} knows the brokers {sorted(known)}, not {sorted(members)}"

    def _wrong_quorum(self, node: SimulatedNode) -> Iterator[str]:
        assert node.node is not None
        quorum = node.node.quorum
        core = None if quorum is None else quorum.driver.core
        if quorum is None or core is None or quorum.leadership.leader_id is None:
            yield f"{node} knows no leader of the quorum"
            return
        keys = {
            each.node.quorum.driver.identity.key
            for each in self.nodes
            if each.node is not None and each.node.quorum is not None
        }
        voters = {voter.key for voter in core.voters.latest}
        if not voters <= keys or len(voters) != min(self._quorum_size, len(self.nodes)):
            ids = sorted(key.id for key in voters)
            yield f"the voters are {ids}, as {node} knows, of which {len(voters & keys)} live"


def _out_of_sync(node: SimulatedNode) -> Iterator[str]:
    """Partitions that lack a leader or an in-sync replica, as the node knows."""
    assert node.node is not None
    for topic in node.node.image.topics.values():
        for index, state in topic.partitions.items():
            if state.leader < 0 or set(state.isr) != set(state.replicas):
                yield (
                    f"{topic.name}-{index} on {node}: "
                    f"leader {state.leader}, in sync {state.isr} of {state.replicas}"
                )

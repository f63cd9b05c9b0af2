"""Brokers inside the test process: `EmbeddedCluster`, and `EmbeddedBroker` for a single one.

Nodes are real: they listen on ports of 127.0.0.1, and any client can connect. Each runs in a thread
of its own. The broker is imported when the first one starts.
"""

import enum
import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from ottla.testing.broker_access import BrokerAccess
from ottla.testing.embedded.clock import MovableClock
from ottla.testing.embedded.faults import Faults

if TYPE_CHECKING:
    from ottla.testing.embedded.embedded_node import EmbeddedNode

START_TIMEOUT_S = 120.0  # For a machine that has other work to do.

# Silence is not taken for death, since all nodes stand still while the test holds the interpreter.
# A node that is stopped or killed is noticed at once all the same.
_PATIENCE = {"broker.session.timeout.ms": "2000000000"}
VOTERS_MAX = 3
_PAUSE_S = 0.01


class Storage(enum.StrEnum):
    MEMORY = "memory"
    DIRECTORY = "directory"  # A temporary one.


class EmbeddedCluster(BrokerAccess):
    """Nodes 1 to `nodes`. `config` has broker settings under Kafka's names; its `listeners` are
    added to the one in `bootstrap_servers`, which needs no login.

    Data survives a stopped node, but not `stop`, unless `data` names a directory.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        config: Mapping[str, object] | None = None,
        storage: Storage | str = Storage.MEMORY,
        data: Path | str | None = None,
        port: int = 0,
    ) -> None:
        """`port` is the first node's; 0 takes a free port, as the other nodes do."""
        super().__init__()
        if nodes < 1:
            raise ValueError(f"a cluster of {nodes} nodes")
        self._nodes_count = nodes
        self._config: dict[str, object] = {**_PATIENCE, **(config or {})}
        self._storage = Storage(storage)
        self._data = None if data is None else Path(data)
        self._port = port
        self._clock = MovableClock()
        self._nodes: dict[int, EmbeddedNode] = {}
        self._temporary: TemporaryDirectory[str] | None = None
        self.faults = Faults(self._nodes, self._clock)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns once clients are served."""
        if self._nodes:
            raise ValueError("it is started already")
        try:
            self._make_nodes()
            first, *others = self._nodes.values()
            first.begin()
            first.wait_until_started(START_TIMEOUT_S)
            for node in others:
                node.begin()
            for node in others:
                node.wait_until_started(START_TIMEOUT_S)
            self._wait_for_voters()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Leaves no thread, socket or file behind. Starting it again starts empty."""
        for node in reversed(self._nodes.values()):
            node.stop(silently=len(self._nodes) > 1)
            node.release()
        self._nodes.clear()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self._nodes.values())

    def servers_of(self, listener: str) -> str:
        """Like `bootstrap_servers`, for a listener named in `listeners` of `config`."""
        return ",".join(node.address_of(listener) for node in self._nodes.values())

    @property
    def node_ids(self) -> list[int]:
        return list(self._nodes)

    def stop_node(self, node_id: int = 1) -> None:
        """Stop a node cleanly: it first hands over its leaderships."""
        self._node(node_id).stop()

    def kill_node(self, node_id: int = 1) -> None:
        """Kill a node as if its process died: requests in flight get no response."""
        self._node(node_id).stop(silently=True)

    def start_node(self, node_id: int = 1) -> None:
        """Start a node again, with its data and address; returns once it serves clients."""
        node = self._node(node_id)
        node.begin()
        node.wait_until_started(START_TIMEOUT_S)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads the partition; waits while there is none."""
        from ottla.testing.embedded.leaders import leader_of

        with self._cluster() as cluster:
            return leader_of(cluster, topic, partition)

    def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None:
        """Returns once that node leads the partition; it must have a replica."""
        from ottla.testing.embedded.leaders import move_leader

        with self._cluster() as cluster:
            move_leader(cluster, topic, partition, to)

    def heal(self) -> None:
        """Start all nodes and cancel pending faults. A moved clock stays moved."""
        self.faults.clear()
        for node_id, node in self._nodes.items():
            if not node.runs:
                self.start_node(node_id)

    def _node(self, node_id: int) -> "EmbeddedNode":
        if node_id not in self._nodes:
            raise ValueError(f"no node {node_id}; there are {self.node_ids}")
        return self._nodes[node_id]

    def _make_nodes(self) -> None:
        with _no_collections():
            from ottla.testing.embedded.embedded_node import EmbeddedNode
        data = self._data
        if data is None and self._storage is Storage.DIRECTORY:
            self._temporary = TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
            data = Path(self._temporary.name)
        for node_id in range(1, self._nodes_count + 1):
            self._nodes[node_id] = EmbeddedNode(
                node_id,
                self._config,
                self._clock,
                port=self._port if node_id == 1 else 0,
                directory=None if data is None else data / f"node-{node_id}",
                join=partial(self._addresses_of_others, node_id),
            )

    def _wait_for_voters(self) -> None:
        """Until the others vote, the cluster cannot survive the loss of its first node."""
        count = min(self._nodes_count, VOTERS_MAX)
        deadline = time.monotonic() + START_TIMEOUT_S
        while any(node.voters_count < count for node in self._nodes.values()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the cluster did not reach {count} voters")
            time.sleep(_PAUSE_S)

    def _addresses_of_others(self, node_id: int) -> tuple[str, ...]:
        """The first node starts the cluster: there is nobody to join."""
        return tuple(
            node.address for node in self._nodes.values() if node.runs and node.node_id != node_id
        )


class EmbeddedBroker(EmbeddedCluster):
    """A single broker: a cluster of one node, node 1."""

    def __init__(
        self,
        *,
        config: Mapping[str, object] | None = None,
        storage: Storage | str = Storage.MEMORY,
        data: Path | str | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(1, config=config, storage=storage, data=data, port=port)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Modules stay, so there is nothing to collect; looking takes a tenth of the import time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

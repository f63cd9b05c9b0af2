from collections.abc import Callable
from typing import Any, cast

from tests.controller.cluster import Cluster

from ottla.controller.machine import ControllerMachine
from ottla.machine.result import Result
from ottla.runtime.broker_connections import BrokerConnections


class FakeSession:
    def __init__(self) -> None:
        self.callbacks: list[Callable[[FakeSession], object]] = []

    def call_on_close(self, callback: Callable[[Any], object]) -> None:
        self.callbacks.append(callback)

    def close(self) -> None:
        for callback in self.callbacks:
            callback(self)


class DirectLeadership:
    def __init__(self, cluster: Cluster, *, is_here: bool) -> None:
        self.cluster = cluster
        self.is_here = is_here

    def submit(self, operation: Callable[[ControllerMachine, int], Result[Any]]) -> None:
        self.cluster.apply(operation(self.cluster.machine, self.cluster.now_ms))


def is_fenced_soon(cluster: Cluster) -> bool:
    cluster.advance(600)
    return cluster.image.brokers[1].fenced


def kit(is_controller: bool = True) -> tuple[Cluster, BrokerConnections, list[int]]:
    cluster = Cluster(brokers=1)
    leadership: Any = DirectLeadership(cluster, is_here=is_controller)
    looked_at: list[int] = []
    connections = BrokerConnections(leadership, looked_at.append)
    return cluster, connections, looked_at


def test_a_broker_whose_connection_ends_is_fenced_soon() -> None:
    cluster, connections, looked_at = kit()
    session = FakeSession()
    for _ in range(3):
        connections.on_heartbeat(1, cast("Any", session))
    assert len(session.callbacks) == 1
    session.close()
    assert looked_at == [1]
    assert is_fenced_soon(cluster)


def test_a_broker_that_has_a_new_connection_is_not() -> None:
    cluster, connections, looked_at = kit()
    old, new = FakeSession(), FakeSession()
    connections.on_heartbeat(1, cast("Any", old))
    connections.on_heartbeat(1, cast("Any", new))
    old.close()
    assert looked_at == []
    assert not is_fenced_soon(cluster)


def test_who_is_not_the_controller_does_nothing() -> None:
    cluster, connections, looked_at = kit(is_controller=False)
    session = FakeSession()
    connections.on_heartbeat(1, cast("Any", session))
    session.close()
    assert looked_at == []
    assert not is_fenced_soon(cluster)

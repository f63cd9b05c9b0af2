"""Faults that a test can inject into embedded nodes."""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.testing.embedded.clock import MovableClock

if TYPE_CHECKING:
    from ottla.testing.embedded.embedded_node import EmbeddedNode


class Faults:
    """Each applies to all nodes, unless `node_id` names one.

    APIs and errors have Kafka's names: "Produce", "NOT_LEADER_OR_FOLLOWER".
    """

    def __init__(self, nodes: "Mapping[int, EmbeddedNode]", clock: MovableClock) -> None:
        self._nodes = nodes
        self._clock = clock

    def fail_next(self, api: str, error: str, count: int = 1, node_id: int | None = None) -> None:
        """The next requests of the API get the error and change nothing."""
        for node in self._chosen(node_id):
            node.answers.fail(api, error, count)

    def delay_next(
        self, api: str, seconds: float, count: int = 1, node_id: int | None = None
    ) -> None:
        """The next requests of the API are carried out but answered this much later."""
        for node in self._chosen(node_id):
            node.answers.delay(api, seconds, count)

    def drop_next(self, api: str, count: int = 1, node_id: int | None = None) -> None:
        """The next requests of the API are carried out, but their connection closes unanswered."""
        for node in self._chosen(node_id):
            node.answers.drop(api, count)

    def advance(self, seconds: float) -> None:
        """Time passes for all nodes at once: whatever falls due happens now."""
        self._clock.advance(seconds * 1000)
        for node in self._nodes.values():
            node.look_at_clock()

    def set_clock(self, now: dt.datetime) -> None:
        """Set the brokers' time of day, to the past or the future."""
        self._clock.set_wall_clock(int(now.timestamp() * 1000))

    def expire_session(self, group: str, member_id: str | None = None) -> None:
        """Expire the sessions of all members of the group, or of one; live members rejoin."""
        running = [node for node in self._nodes.values() if node.runs]
        if not sum(node.expire_sessions(group, member_id) for node in running):
            raise ValueError(f"group {group} has no member {member_id or 'at all'}")

    def fill_disk(self, free_bytes: int = 0, node_id: int | None = None) -> None:
        """From now on only this many bytes fit. For in-memory brokers."""
        for node in self._chosen(node_id):
            node.disk.disk_full(free_bytes)

    def free_disk(self, node_id: int | None = None) -> None:
        for node in self._chosen(node_id):
            node.disk.disk_full(None)

    def clear(self) -> None:
        """Cancel all faults; a moved clock stays moved."""
        for node in self._nodes.values():
            node.answers.clear()
            if node.has_memory_disk:
                node.disk.disk_full(None)

    def _chosen(self, node_id: int | None) -> "Iterable[EmbeddedNode]":
        return self._nodes.values() if node_id is None else [self._nodes[node_id]]

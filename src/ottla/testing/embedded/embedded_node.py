"""A node across restarts: its disk, port and clock survive a stop."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from ottla.network.held_port import HOST, HeldPort
from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.testing.embedded.answers import AnswerFaults
from ottla.testing.embedded.clock import MovableClock
from ottla.testing.embedded.node_thread import NodeThread

MEMORY_DIRECTORY: Final = "/memory"

# A test wants its answers soon, and needs nothing of what it wrote after a power loss.
DEFAULTS: Final[Mapping[str, str]] = {
    "flush.policy": "os",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class EmbeddedNode:
    """Its files are in `directory`, or in memory without one."""

    def __init__(
        self,
        node_id: int,
        config: Mapping[str, object],
        clock: MovableClock,
        *,
        port: int,
        directory: Path | None,
        join: Callable[[], tuple[str, ...]],
    ) -> None:
        self.node_id = node_id
        self.answers = AnswerFaults()
        self._clock = clock
        self._config = {key: _text(value) for key, value in {**DEFAULTS, **config}.items()}
        more = self._config.pop("listeners", "")  # Beside the one that `address` is of.
        self._more_listeners = tuple(text.strip() for text in more.split(",") if text.strip())
        self._directory = directory
        self._disk = None if directory is not None else FaultyFilesystem(now_ms=clock.now_ms)
        self._join = join
        self._has_known_port = port != 0
        self._port = HeldPort(port)
        self._thread: NodeThread | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port.number}"

    @property
    def runs(self) -> bool:
        return self._thread is not None and self._thread.runs

    @property
    def has_memory_disk(self) -> bool:
        return self._disk is not None

    @property
    def disk(self) -> FaultyFilesystem:
        if self._disk is None:
            raise ValueError("only a disk in memory can be made to fail")
        return self._disk

    @property
    def thread(self) -> NodeThread:
        if self._thread is None:
            raise ValueError(f"node {self.node_id} is not started")
        return self._thread

    @property
    def node(self) -> Node:
        return self.thread.node

    def address_of(self, listener: str) -> str:
        server = self.node.server
        assert server is not None
        for endpoint in server.endpoints:
            if endpoint.listener_name == listener:
                return f"{HOST}:{endpoint.port}"
        names = [endpoint.listener_name for endpoint in server.endpoints]
        raise ValueError(f"there is no listener {listener}; there are {names}")

    @property
    def voters_count(self) -> int:
        """Voters of the metadata quorum, as far as this node knows."""
        quorum = self.node.quorum
        core = None if quorum is None else quorum.driver.core
        return 0 if core is None else len(core.voters.latest)

    def begin(self) -> None:
        """Start without waiting."""
        values = load_config(
            ServeSettings(
                id=self.node_id,
                listeners=(f"PLAINTEXT://{self.address}", *self._more_listeners),
                data=(self._directory or Path(MEMORY_DIRECTORY),),
                overrides=self._config,
                join=self._join(),
            ),
            {},
        )
        name = f"ottla-node-{self.node_id}"
        self._thread = NodeThread(
            name, values, self._environment, self._clock, listens_first=self._has_known_port
        )
        self._thread.begin()

    def wait_until_started(self, timeout_s: float) -> None:
        thread = self.thread
        try:
            thread.wait_until_started(timeout_s)
        except BaseException:
            self._thread = None
            raise
        thread.call(self._stand_between)

    def stop(self, *, silently: bool = False) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(silently=silently)

    def release(self) -> None:
        """Stop for good and give up the port."""
        self.stop()
        self._port.release()

    def look_at_clock(self) -> None:
        if self._thread is not None:
            self._thread.look_at_clock()

    def expire_sessions(self, group: str, member_id: str | None) -> int:
        """Expire a group's sessions, or one member's, that this node has; returns how many."""

        def is_wanted(key: str) -> bool:
            _, kind, rest = (*key.split("/", 2), "", "")[:3]
            if kind != "session":
                return False
            return rest == f"{group}/{member_id}" if member_id else rest.startswith(f"{group}/")

        def expire() -> int:
            broker = self.node.broker
            assert broker is not None
            return sum(each.timers.expire_now(is_wanted) for each in broker.groups.all())

        return self.thread.call(expire)

    def _stand_between(self) -> None:
        server = self.node.server
        assert server is not None
        server.use(self.answers.around(server.dispatch))

    def _environment(self) -> Environment:
        environment = dataclasses.replace(Environment.real(), clock=self._clock)
        if self._disk is None:
            return environment
        return dataclasses.replace(environment, filesystem=self._disk)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

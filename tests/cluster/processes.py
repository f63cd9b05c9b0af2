"""A cluster of real processes on this machine, for tests that kill, pause and restart nodes."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from kio.schema.describe_quorum.v2 import request as describe_quorum
from kio.schema.types import TopicName
from kio.static.primitive import i32
from tests.broker_process import BrokerProcess
from tests.clients.wire import Wire
from tests.cluster.faults.links import Links
from tests.cluster.faults.locks import Locks
from tests.cluster.faults.synced_copy import empty, lose_unsynced
from tests.ports import ReservedPort

WAIT_S = 300  # The machine may be busy.

# For an undisturbed cluster: slow nodes are not declared dead, and nothing moves.
PATIENT = (
    *("--set", "broker.session.timeout.ms=60000"),
    *("--set", "controller.quorum.fetch.timeout.ms=60000"),
)
METADATA_TOPIC = TopicName("__cluster_metadata")
_KEEPS_SYNCED = "tests.cluster.faults.synced_copy"
_LOAD_OF_A_CORE = 5.0  # Above this, a process may not get to run for a second.
_DEFAULTS_FACTOR = 6.0  # Ratio of Ottla's defaults to the shortest timeouts of `hasty`.


def hasty() -> tuple[str, ...]:
    """Short timeouts, for tests that wait until a hanging or isolated node is noticed.

    They are as short as this machine allows: on a busy one, slow nodes would be declared dead
    repeatedly. At most they are the defaults.
    """
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    factor = min(max(1.0, load / _LOAD_OF_A_CORE), _DEFAULTS_FACTOR)
    return (
        *("--set", f"broker.session.timeout.ms={1500 * factor:.0f}"),
        *("--set", f"controller.quorum.fetch.timeout.ms={1000 * factor:.0f}"),
        *("--set", f"controller.quorum.election.timeout.ms={500 * factor:.0f}"),
    )


class ClusterProcesses:
    """Nodes 1 to `count`; the first three are voters once `wait_for_voters` has returned.

    `arguments` are for every `ottla serve`. Nodes are stopped, in whatever state, at the end of the
    `with` block. With `links`, everyone reaches them through proxies; with `locks`, which need
    links, they have certificates, and clients log in. With `keeps_synced`, each has a copy of what
    it has synced, and `lose_power` leaves only that. `program` runs `serve`, as in `BrokerProcess`.
    """

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *arguments: str,
        links: Links | None = None,
        locks: Locks | None = None,
        keeps_synced: bool = False,
        program: Sequence[str] = ("ottla",),
    ) -> None:
        self._directory = directory
        self._arguments = arguments
        self.links = links
        self._locks = locks
        self._keeps_synced = keeps_synced
        self._program = program
        self._count = count
        self._nodes: dict[int, BrokerProcess] = {}
        self._paused: set[int] = set()

    def __enter__(self) -> Self:
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """All nodes' addresses, for clients."""
        if self._locks:
            return self._locks.bootstrap
        return ",".join(node.bootstrap for node in self._nodes.values())

    @property
    def ids(self) -> list[int]:
        return sorted(self._nodes)

    @property
    def data(self) -> dict[int, Path]:
        """Each node's log directory."""
        return {node_id: self._nodes[node_id].data for node_id in self.ids}

    @property
    def running(self) -> list[int]:
        return [node_id for node_id in self.ids if self._nodes[node_id].is_running]

    @property
    def awake(self) -> list[int]:
        return [node_id for node_id in self.running if node_id not in self._paused]

    def node(self, node_id: int) -> BrokerProcess:
        return self._nodes[node_id]

    def bootstrap_of(self, node_id: int) -> str:
        return self._nodes[node_id].bootstrap

    def start_all(self) -> None:
        """The first one starts the cluster; the others join it, at the same time."""
        for node_id in range(1, self._count + 1):
            self._add(node_id)
        for node_id in range(1, self._count + 1):
            self._launch(node_id)
        for node in self._nodes.values():
            node.wait_until_ready()

    def add(self, node_id: int, *arguments: str) -> BrokerProcess:
        """Adds a node, which joins."""
        node = self._add(node_id, *arguments)
        node.start()
        return node

    def kill(self, node_id: int) -> None:
        """Kill it, like a crash of the process."""
        self._paused.discard(node_id)
        self._nodes[node_id].kill()

    def terminate(self, node_id: int) -> int:
        """Stop it as an operator would; returns its exit code."""
        return self._nodes[node_id].stop()

    def restart(self, node_id: int, *, wait: bool = True) -> None:
        """Starts it again after a kill or stop, on the same port and directory."""
        self._launch(node_id)
        if wait:
            self._nodes[node_id].wait_until_ready()

    def pause(self, node_id: int) -> None:
        """Freezes it, like a long pause of a virtual machine."""
        self._nodes[node_id].send(signal.SIGSTOP)
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        self._nodes[node_id].send(signal.SIGCONT)
        self._paused.discard(node_id)

    @contextmanager
    def paused(self, node_id: int) -> Iterator[None]:
        self.pause(node_id)
        try:
            yield
        finally:
            self.resume(node_id)

    def lose_directory(self, node_id: int) -> None:
        """Empties a killed node's disk; it rejoins when it is started again."""
        node = self._nodes[node_id]
        empty(node.data)
        shutil.rmtree(_copy_of(node.data.parent), ignore_errors=True)
        if "--join" not in node.arguments:
            others = [self._join_address(other_id) for other_id in self.ids if other_id != node_id]
            node.arguments += ("--join", ",".join(others))

    def lose_power(self) -> None:
        """All nodes die at once, and unsynced data is lost."""
        assert self._keeps_synced
        for node_id in self.running:
            self.kill(node_id)
        for node in self._nodes.values():
            lose_unsynced(node.data, _copy_of(node.data.parent))

    def stop(self) -> None:
        for node_id in list(self._paused):
            self.resume(node_id)
        for node in self._nodes.values():
            node.send(signal.SIGTERM)
        for node in self._nodes.values():
            node.stop()
        if self.links is not None:
            self.links.close()

    def describe(self, node_id: int | None = None, *, check: bool = True) -> Any:
        """DescribeQuorum's response from a running node; `check` that it has no error."""
        partition = describe_quorum.PartitionData(partition_index=i32(0))
        topic = describe_quorum.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        node = self._nodes[node_id or self.awake[0]]
        with Wire(node.bootstrap) as wire:
            response = wire.call(describe_quorum.DescribeQuorumRequest(topics=(topic,)))
        assert not check or response.error_code == 0, response.error_message
        return response

    def quorum(self, node_id: int | None = None) -> Any:
        """The part of the response about the metadata partition."""
        return self.describe(node_id).topics[0].partitions[0]

    def voters(self) -> list[int]:
        return [voter.replica_id for voter in self.quorum().current_voters]

    def leader(self) -> int:
        """The voters of the metadata quorum."""
        return int(self.quorum().leader_id)

    def wait_for_voters(self, *ids: int) -> None:
        try:
            wait_until(lambda: tuple(self.voters()) == ids, f"voters {ids}")
        except AssertionError as error:
            state = f"{self.voters()} vote, {self.running} run\n{self.log_text()[-2000:]}"
            raise AssertionError(f"{error}: {state}") from error

    def log_text(self) -> str:
        return "\n".join(
            f"--- node {node_id}\n{node.log_text()}" for node_id, node in self._nodes.items()
        )

    def _launch(self, node_id: int) -> None:
        self._nodes[node_id].launch()
        if self.links is not None:
            self.links.processes = {
                self._nodes[running_id].pid: running_id for running_id in self.running
            }

    def _join_address(self, node_id: int) -> str:
        """Where other nodes reach this one."""
        return self._locks.join_address(node_id) if self._locks else self.bootstrap_of(node_id)

    def _add(self, node_id: int, *arguments: str) -> BrokerProcess:
        directory = self._directory / f"node-{node_id}"
        directory.mkdir(exist_ok=True)
        join = ("--join", self._join_address(1)) if self._nodes else ()
        port = ReservedPort()
        locked = self._locks.arguments(node_id, port.number) if self._locks else ()
        node = BrokerProcess(
            directory,
            "--id",
            str(node_id),
            *join,
            *self._arguments,
            *locked,
            *arguments,
            port=port,
            advertised_port=self.links.add(node_id, port.number)
            if self.links and not self._locks
            else None,
            program=(_KEEPS_SYNCED, str(_copy_of(directory)))
            if self._keeps_synced
            else self._program,
        )
        self._nodes[node_id] = node
        return node


def _copy_of(directory: Path) -> Path:
    return directory / "synced"


def wait_until(condition: Callable[..., object], what: str = "it") -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {WAIT_S} s"
        time.sleep(0.02)

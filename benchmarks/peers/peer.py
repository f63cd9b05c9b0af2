"""The interface between the harness and a broker under test."""

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks import processes

READY_SECONDS_MAX = 240.0
# For every broker under test. Groups can be given a heartbeat interval that shows differences.
GROUP_SETTINGS = {
    "group.initial.rebalance.delay.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


class Flush(StrEnum):
    """When appended records are synced, in Ottla's terms."""

    ACK = "ack"
    INTERVAL = "interval"
    OS = "os"


class Unavailable(Exception):
    """This peer is not available on this machine."""


class Peer(Protocol):
    name: str

    def prepare(self, cache: Path) -> None:
        """Installs what is missing, once; raises Unavailable."""

    def settings(self) -> dict[str, str]:
        """Version and settings, for the report."""

    def format(self, directory: Path, port: int) -> None:
        """Creates an empty data directory, if that is a separate step."""

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        """The command line that serves `directory` on `port`."""

    def topic_config(self, flush: Flush) -> dict[str, str]:
        """The topic configs for the flush policy."""

    def shares_server(self) -> bool:
        """Whether one server can have topics of every flush policy."""

    def warm_seconds(self) -> float:
        """How long the load runs before it counts."""


class Member(NamedTuple):
    """One node of a cluster on this machine."""

    node_id: int
    directory: Path
    port: int
    controller_port: int  # For brokers whose quorum has its own port.


class ClusterPeer(Peer, Protocol):
    """A peer whose nodes can form a cluster."""

    def format_member(
        self, members: Sequence[Member], member: Member, settings: Mapping[str, str]
    ) -> None:
        """Like `format`, with the broker's settings for this run."""

    def member_command(
        self, members: Sequence[Member], member: Member, flush: Flush, settings: Mapping[str, str]
    ) -> list[str]:
        """The command line of this member; members are started in order."""


@dataclass
class Server:
    """A running broker."""

    peer: Peer
    directory: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        processes.stop(self.process)

    def wait_until_listening(self, seconds_max: float = READY_SECONDS_MAX) -> None:
        deadline = time.perf_counter() + seconds_max
        while time.perf_counter() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.peer.name} ended: {self._last_words()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=10).close()
            except OSError:
                time.sleep(0.001)
            else:
                return
        raise TimeoutError(f"{self.peer.name} does not listen: {self._last_words()}")

    def _last_words(self) -> str:
        return log_path(self.directory).read_text(errors="replace")[-2_000:]


def log_path(directory: Path) -> Path:
    return directory.with_suffix(".out")


def spawn_server(peer: Peer, directory: Path, flush: Flush, port: int | None = None) -> Server:
    """Starts the broker without waiting for it. A new directory is formatted first."""
    port = port or processes.free_port()
    if not directory.exists():
        directory.mkdir(parents=True)
        peer.format(directory, port)
    command = peer.command(directory, port, flush)
    return Server(peer, directory, port, processes.spawn(command, log_path(directory)))

"""A cluster of one peer: several nodes on this machine."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks import processes
from benchmarks.peers.peer import ClusterPeer, Flush, Member, Server, log_path

CLUSTER_NODES = 3


class Cluster:
    """Nodes 1 to `count`; each may be killed and restarted. `stop` ends the remaining ones."""

    def __init__(
        self,
        peer: ClusterPeer,
        directory: Path,
        flush: Flush,
        settings: Mapping[str, str],
        count: int = CLUSTER_NODES,
    ) -> None:
        self.peer = peer
        self._flush = flush
        self._settings = settings
        self._members = [
            Member(
                number, directory / f"node-{number}", processes.free_port(), processes.free_port()
            )
            for number in range(1, count + 1)
        ]
        self._servers: dict[int, Server] = {}
        for member in self._members:
            member.directory.mkdir(parents=True)
            peer.format_member(self._members, member, settings)

    @property
    def address(self) -> str:
        """All nodes' addresses, for clients."""
        return ",".join(f"127.0.0.1:{member.port}" for member in self._members)

    @property
    def node_ids(self) -> list[int]:
        return [member.node_id for member in self._members]

    @property
    def servers(self) -> list[Server]:
        """The running nodes, by id."""
        return [self._servers[node_id] for node_id in sorted(self._servers)]

    @property
    def pids(self) -> list[int]:
        return [server.pid for server in self.servers]

    def start(self) -> None:
        """Starts all at once, without waiting."""
        for node_id in self.node_ids:
            self.start_node(node_id)

    def start_node(self, node_id: int) -> Server:
        member = self._members[node_id - 1]
        command = self.peer.member_command(self._members, member, self._flush, self._settings)
        process = processes.spawn(command, log_path(member.directory))
        server = Server(self.peer, member.directory, member.port, process)
        self._servers[node_id] = server
        return server

    def address_of(self, node_id: int) -> str:
        return f"127.0.0.1:{self._members[node_id - 1].port}"

    def kill(self, node_id: int) -> None:
        """Ends it like a crash of the process."""
        server = self._servers.pop(node_id)
        server.process.kill()
        server.process.wait()

    def stop(self) -> None:
        for server in self._servers.values():
            server.process.terminate()
        for server in self._servers.values():
            server.stop()
        self._servers.clear()

"""A cluster secured by `ottla secure init`, as processes."""

import os
import subprocess
from pathlib import Path

from tests.broker_process import START_TIMEOUT_S
from tests.fork_server import REPOSITORY, ForkedProcess, run_forked
from tests.ports import ReservedPort, reserve_row

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")  # All are this machine, under different names.


class LockedCluster:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ports: list[ReservedPort] = reserve_row(2)
        self.port = self._ports[0].number
        self.secure = directory / "secure"
        self._nodes: dict[str, ForkedProcess] = {}

    @property
    def command_config(self) -> str:
        return str(self.secure / "clients" / "admin.properties")

    def ottla(
        self, *arguments: str, timeout_s: float = START_TIMEOUT_S
    ) -> "subprocess.CompletedProcess[str]":
        return run_forked(
            "ottla", arguments, self._environment(), timeout=timeout_s, directory=self.directory
        )

    def admin(self, *arguments: str) -> str:
        done = self.ottla(*arguments, "--command-config", self.command_config)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, host: str, *arguments: str, config: Path | None = None) -> None:
        node = config or self.secure / "nodes" / host / "broker.yaml"
        data = self.directory / f"data-{node.parent.name}"
        words = ["serve", "--config", str(node), "--data", str(data), *arguments]
        with self.log(node.parent.name).open("ab") as log:
            self._nodes[node.parent.name] = ForkedProcess(
                "ottla", words, self._environment(), log.fileno(), log.fileno()
            )

    def init(self) -> None:
        hosts = ",".join(HOSTS)
        done = self.ottla("secure", "init", "--hosts", hosts, "--port", str(self.port))
        assert done.returncode == 0, done.stderr
        properties = Path(self.command_config)
        servers = ",".join(f"{host}:{self.port}" for host in HOSTS)  # One of them may be down.
        text = properties.read_text()
        first, rest = text.split("\n", 1)
        assert first == f"bootstrap.servers={HOSTS[0]}:{self.port}"
        properties.write_text(f"bootstrap.servers={servers}\n{rest}")

    def begin(self) -> None:
        """Start all nodes as a new cluster."""
        self.start(HOSTS[0], "--new-cluster")
        for host in HOSTS[1:]:
            self.start(host)
        for host in HOSTS:
            self.wait_for(host)

    def wait_for(self, host: str) -> None:
        """Waits until the others see it as an active broker."""
        number = str(1 + HOSTS.index(host))
        wait = ("node", "wait", number, "--timeout", str(START_TIMEOUT_S))
        done = self.ottla(*wait, "--command-config", self.command_config)
        assert done.returncode == 0, done.stderr + self.log(host).read_text()

    def restart(self, host: str) -> None:
        self.kill(host)
        self.start(host)
        self.wait_for(host)

    def node(self, host: str) -> Path:
        """Its directory, with its configuration, key and certificates."""
        return self.secure / "nodes" / host

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def wait(self, name: str) -> int:
        """Waits until it exits by itself."""
        return self._nodes.pop(name).wait(START_TIMEOUT_S)

    def kill(self, name: str) -> None:
        process = self._nodes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in self._nodes.values():
            process.kill()
        for process in self._nodes.values():
            process.wait()

    def _environment(self) -> dict[str, str]:
        own = {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
        own["XDG_CONFIG_HOME"] = str(self.directory)
        own["OTTLA_CONNECT_TIMEOUT"] = "60"
        own["OTTLA_QUORUM_JOIN_TIMEOUT_MS"] = "240000"
        return {**os.environ, **own}

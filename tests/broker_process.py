"""A broker in its own process, for tests that need a real socket and a real disk."""

import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.fork_server import REPOSITORY, ForkedProcess
from tests.ports import HOST, ReservedPort

START_TIMEOUT_S = 240  # The machine may be busy.
STOP_TIMEOUT_S = 120
LOG_CHARACTERS_SHOWN = 8_000

# Tests write records dated 1970, which retention would remove on its next pass; on a slow machine
# it would run before they are read. A test of retention overrides this with --set.
KEEP_OLD_RECORDS = {"OTTLA_LOG_RETENTION_CHECK_INTERVAL_MS": "3600000"}
# On a busy machine the node to join may answer slowly.
PATIENT = {"OTTLA_QUORUM_JOIN_TIMEOUT_MS": "240000"}

# Metadata v1 for no topics, with correlation id 1 and without a client id.
METADATA_REQUEST = bytes.fromhex("0000000e 0003 0001 00000001 ffff 00000000")
METADATA_HEAD = struct.Struct(">iii")  # Size, correlation id, number of brokers.


class BrokerProcess:
    """`python -m ottla serve` on a free port, stopped by its process id."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        port: ReservedPort | None = None,
        advertised_port: int | None = None,
        open_files_max: int | None = None,
        program: Sequence[str] = ("ottla",),
    ) -> None:
        """`program` is the module to run, and its arguments before `serve`.

        `open_files_max` is the limit that `ulimit -n` sets.
        """
        self.data = directory / "data"
        self.reserved = port or ReservedPort()
        self.port = self.reserved.number
        self.bootstrap = f"{HOST}:{advertised_port or self.port}"
        self._log = directory / "broker.log"
        self._program = program
        self.arguments = arguments
        if advertised_port:
            self.arguments += ("--advertised", self.bootstrap)
        self._open_files_max = open_files_max
        self._process: ForkedProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.launch()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def launch(self) -> None:
        """Start the process without waiting for it to be ready."""
        assert self._process is None
        module, *words = self._program
        arguments = [*words, "serve", "--data", str(self.data), *self.arguments]
        if not any(argument.startswith("--listener") for argument in self.arguments):
            arguments += ["--port", str(self.port)]
        environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
        environment |= KEEP_OLD_RECORDS | PATIENT
        with self._log.open("ab") as log:
            self._process = ForkedProcess(
                module,
                arguments,
                environment,
                log.fileno(),
                log.fileno(),
                open_files_max=self._open_files_max,
            )

    def stop(self) -> int:
        """Stop it as an operator would; returns its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, like a crash."""
        self._end(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        if self.is_running:
            os.kill(self.pid, number)

    def log_text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the broker did not end\n{self.log_text()}") from None

    def wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _knows_a_broker(self.port):
            if self._ended() or time.monotonic() > deadline:
                self._process.kill()
                self._process.wait()
                raise AssertionError(f"the broker did not start\n{self.log_text()}")

    def _ended(self) -> bool:
        """Wait a moment; returns whether it exited."""
        assert self._process is not None
        try:
            self._process.wait(0.02)
        except subprocess.TimeoutExpired:
            return False
        return True


class ExternalBroker:
    """An external broker, named by OTTLA_TEST_BOOTSTRAP; it may be Apache Kafka."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        host, _, port = bootstrap.rpartition(":")
        self.host, self.port = host, int(port)

    def log_text(self) -> str:
        return ""


def _knows_a_broker(port: int) -> bool:
    """Whether metadata lists it yet."""
    try:
        with socket.create_connection((HOST, port), timeout=START_TIMEOUT_S) as connection:
            connection.sendall(METADATA_REQUEST)
            head = connection.recv(METADATA_HEAD.size, socket.MSG_WAITALL)
            return len(head) == METADATA_HEAD.size and METADATA_HEAD.unpack(head)[2] > 0
    except OSError:
        return False

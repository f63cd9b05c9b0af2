"""An HTTP gateway to a test's brokers, in a process of its own that ends with the test.

It needs the extra `gateway`.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from typing import Self

from ottla.network.held_port import HOST, HeldPort

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_PAUSE_S = 0.02


class Gateway:
    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._port: HeldPort | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        if self._port is None:
            raise ValueError("the gateway is not started")
        return f"http://{HOST}:{self._port.number}"

    def start(self) -> None:
        """Returns once the gateway answers."""
        self._port = HeldPort()
        with tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ottla.cli.child_node", str(os.getpid()), "gateway"),
                    *("--bootstrap-server", self._bootstrap_servers),
                    *("--host", HOST, "--port", str(self._port.number)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            deadline = time.monotonic() + START_TIMEOUT_S
            while not self._listens():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    text = log.read().decode(errors="replace")
                    self.stop()
                    raise RuntimeError(f"the gateway does not start:\n{text}")
                time.sleep(_PAUSE_S)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._port is not None:
            self._port.release()
            self._port = None

    def _listens(self) -> bool:
        assert self._port is not None
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self._port.number)) == 0

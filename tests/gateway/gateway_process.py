"""A gateway in its own process, on a free port, stopped by its process id."""

import os
import signal
import ssl
import subprocess
import time
from pathlib import Path
from typing import Self

import httpx
from tests.broker_process import START_TIMEOUT_S, STOP_TIMEOUT_S
from tests.fork_server import GATEWAY, ForkedProcess
from tests.ports import HOST, ReservedPort

PATIENT = httpx.Timeout(240)


class GatewayProcess:
    """`python -m ottla gateway`."""

    def __init__(
        self, directory: Path, bootstrap: str, *arguments: str, authorities: Path | None = None
    ) -> None:
        """`authorities` are the authorities of its certificate, if it has one."""
        self.port = ReservedPort()
        self.tls = ssl.create_default_context(cafile=authorities) if authorities else None
        self.url = f"{'http' if self.tls is None else 'https'}://{HOST}:{self.port}"
        self._log = directory / f"gateway-{self.port}.log"
        self._arguments = ["gateway", "--bootstrap-server", bootstrap]
        self._arguments += ["--port", str(self.port), *arguments]
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

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = ForkedProcess(
                "ottla",
                self._arguments,
                os.environ,
                log.fileno(),
                log.fileno(),
                preloaded=GATEWAY,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the gateway did not start\n{self.log_text()}")

    def stop(self) -> int:
        """Stop it as an operator would; returns its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it, like a crash."""
        self._end(signal.SIGKILL)

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

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
            raise AssertionError(f"the gateway did not end\n{self.log_text()}") from None

    def _answers(self) -> bool:
        try:
            answer = httpx.get(f"{self.url}/health", timeout=PATIENT, verify=self.tls or True)
            return answer.status_code == httpx.codes.OK
        except httpx.TransportError:
            time.sleep(0.02)
            return False

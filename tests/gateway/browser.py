"""A real browser without a window: Chromium, driven over WebDriver."""

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from tests.broker_process import START_TIMEOUT_S
from tests.ports import HOST, ReservedPort

PATIENT = httpx.Timeout(300)
SCRIPT_TIMEOUT_MS = 240_000

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """Skips the test if there is no Chromium."""

    def __init__(self, directory: Path) -> None:
        driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
        if driver is None or chromium is None:
            pytest.skip("no browser: install Debian's chromium and chromium-driver")
        self._driver, self._chromium = driver, chromium
        self._profile = directory / "profile"
        self._port = ReservedPort()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [self._driver, f"--port={self._port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._client = httpx.Client(base_url=f"http://{HOST}:{self._port}", timeout=PATIENT)
        try:
            self._wait_for_driver()
            arguments = [*_ARGUMENTS, f"--user-data-dir={self._profile}"]
            options = {"binary": self._chromium, "args": arguments}
            wanted = {"alwaysMatch": {"goog:chromeOptions": options}}
            self._session = self._post("/session", capabilities=wanted)["sessionId"]
            self._post(f"/session/{self._session}/timeouts", script=SCRIPT_TIMEOUT_MS)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.delete(f"/session/{self._session}")
        self._end()

    def open(self, url: str) -> None:
        self._post(f"/session/{self._session}/url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """The script's result."""
        path = f"/session/{self._session}/execute/sync"
        return self._post(path, script=script, args=list(arguments))

    def run_until_done(self, script: str, *arguments: Any) -> Any:
        """The value that the script passes to `done`, its last argument."""
        path = f"/session/{self._session}/execute/async"
        script = f"const done = arguments[arguments.length - 1];\n{script}"
        return self._post(path, script=script, args=list(arguments))

    def _post(self, path: str, **fields: Any) -> Any:
        response = self._client.post(path, json=fields)
        assert response.status_code == httpx.codes.OK, response.text
        return response.json()["value"]

    def _wait_for_driver(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if self._client.get("/status").json()["value"]["ready"]:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
        raise AssertionError("the driver of the browser did not start")

    def _end(self) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait()

"""Where Spark runs: on this machine, on a cluster, or behind a Spark Connect server.

A deployment configures `getOrCreate` through a program's environment, as `spark-submit` and
`SPARK_REMOTE` do for users. Everything comes from the installed PySpark.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fork_server import REPOSITORY

from pyspark_ottla.java import find_java
from pyspark_ottla.python import wrap_python
from pyspark_ottla.session import session_settings

HOST = "127.0.0.1"
CORES = 2
START_TIMEOUT_S = 400
RUN_TIMEOUT_S = 800
STOP_TIMEOUT_S = 60
POLL_S = 0.05
LOG_CHARACTERS_SHOWN = 6_000
SETTINGS = session_settings(CORES) | {
    "spark.python.authenticate.socketTimeout": "120s",  # For a very busy machine.
    "spark.ui.enabled": "false",
}
CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True)
class Deployment:
    name: str
    address: str  # `local[2]`, `spark://host:port` or `sc://host:port`.
    directory: Path
    settings: Mapping[str, str] = field(default_factory=lambda: SETTINGS)
    variables: Mapping[str, str] = field(default_factory=dict)  # Besides the usual ones.

    @property
    def environment(self) -> dict[str, str]:
        base = {**base_environment(), **self.variables}
        if self.address.startswith("sc://"):
            return base | {"SPARK_REMOTE": self.address}
        arguments = ["--master", self.address, *_as_arguments(self._settings()), "pyspark-shell"]
        return base | {"PYSPARK_SUBMIT_ARGS": shlex.join(arguments)}

    def run(self, module: str, *arguments: str, timeout_s: float = RUN_TIMEOUT_S) -> str:
        """The program's output; a failure shows its log."""
        return self.complete(module, *arguments, timeout_s=timeout_s).stdout

    def complete(
        self, module: str, *arguments: str, timeout_s: float = RUN_TIMEOUT_S
    ) -> subprocess.CompletedProcess[str]:
        """Includes the logs of the program and of its Spark's processes."""
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        assert not done.returncode, done.stderr[-LOG_CHARACTERS_SHOWN:]
        return done

    def _settings(self) -> dict[str, str]:
        return {**self.settings, "spark.sql.warehouse.dir": str(self.directory / "warehouse")}


def base_environment() -> dict[str, str]:
    """For anything that starts a JVM or a Python worker."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return kept | {
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": str(wrap_python()),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)]),
        "SPARK_LOCAL_IP": HOST,
    }


@contextmanager
def local_deployment(directory: Path) -> Iterator[Deployment]:
    yield Deployment("local", f"local[{CORES}]", directory)


@contextmanager
def standalone_deployment(directory: Path) -> Iterator[Deployment]:
    """A master and a worker process; executors are processes of the worker."""
    ports = ["--host", HOST, "--port", "0", "--webui-port", "0"]
    master = ["spark-class", "org.apache.spark.deploy.master.Master", *ports]
    with _running(master, directory / "master.log", r"Starting Spark master at (\S+)\s") as address:
        worker = ["spark-class", "org.apache.spark.deploy.worker.Worker", *ports]
        worker += ["--cores", str(CORES), "--memory", "2g", "--work-dir", str(directory / "work")]
        registered = r"(Successfully registered with master)"
        with _running([*worker, address], directory / "worker.log", registered):
            yield Deployment("standalone", address, directory)


@contextmanager
def connect_deployment(directory: Path, master: str = f"local[{CORES}]") -> Iterator[Deployment]:
    settings = SETTINGS | {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    server = ["spark-submit", "--master", master, "--class", CONNECT_SERVER]
    server += [*_as_arguments(settings), "spark-internal"]
    started = r"Spark Connect server started at: \S*:(\d+)\s"
    with _running(server, directory / "connect.log", started) as port:
        yield Deployment("connect", f"sc://{HOST}:{port}", directory)


@contextmanager
def shared_java(directory: Path) -> Iterator[dict[str, str]]:
    """The variables with which commands, one after another, run their Spark in one Java process.

    It runs in the directory, as their own would.
    """
    from pyspark import java_gateway

    launch: Any = java_gateway.launch_gateway
    gateway = launch(popen_kwargs={"cwd": directory, "stderr": subprocess.DEVNULL})
    parameters = gateway.gateway_parameters
    try:
        yield {
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
        }
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


@contextmanager
def _running(command: list[str], log: Path, ready: str) -> Iterator[str]:
    """A Spark process; returns the match of the group in `ready` in its log."""
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / command[0]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *command[1:]],
            env=base_environment(),
            cwd=log.parent,
            stdout=output,
            stderr=output,
        )
    try:
        yield _wait_for(process, log, ready)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], log: Path, ready: str) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        text = log.read_text(errors="replace")
        if found := re.search(ready, text):
            return found[1]
        assert process.poll() is None, text[-LOG_CHARACTERS_SHOWN:]
        assert time.monotonic() < deadline, text[-LOG_CHARACTERS_SHOWN:]
        time.sleep(POLL_S)


def _as_arguments(settings: Mapping[str, str]) -> list[str]:
    return [item for name, value in settings.items() for item in ("--conf", f"{name}={value}")]

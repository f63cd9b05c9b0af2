"""Starts Python programs in milliseconds, by forking a process that has imported them.

Most of a broker's startup is loading modules, and the tests start hundreds of brokers. There is one
server per test process and set of modules. It has no threads, opens nothing and exits with the
tests; a child is a process of its own, with the given arguments, environment and standard streams,
and behaves like `python -m MODULE`. `tests/cli` starts the command itself.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import resource
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

REPOSITORY = Path(__file__).parents[1]

# What servers import. A broker must not have what only commands or gateways need.
BROKER = ("ottla.cli.main", "ottla.cli.serve", "ottla.node.node_process")
COMMANDS = (
    *BROKER,
    "ottla.cli.broker_call",
    "ottla.cli.consume",
    "ottla.cli.produce",
    "rich.table",
)
GATEWAY = (
    "ottla.cli.main",
    "ottla.cli.gateway",
    "ottla.cli.connection",
    "ottla.console.pages",
    "ottla.gateway.server",
)

_REQUEST_BYTES_MAX = 1 << 20
_ANSWER = struct.Struct(">i")  # The process id, and later the exit status, as in Popen.


class ForkedProcess:
    """The part of `subprocess.Popen` that the tests use."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdout: int,
        stderr: int,
        *,
        directory: Path | None = None,
        open_files_max: int | None = None,
        preloaded: tuple[str, ...] = BROKER,
    ) -> None:
        """The process is killed with the server, which exits with this process."""
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(directory or Path.cwd()),
            "open_files_max": open_files_max,
        }
        self._answers, theirs = socket.socketpair()
        with theirs, open(os.devnull) as nothing:
            streams = [nothing.fileno(), stdout, stderr]
            _server(preloaded).send(json.dumps(request).encode(), [*streams, theirs.fileno()])
        self.pid = self._next_answer()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0):
            self._take_end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired("forked", timeout or 0)
            self._take_end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # The server has it, and reports it next.
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        waiting = select.poll()  # Unlike select(), it accepts descriptors above 1023.
        waiting.register(self._answers, select.POLLIN)
        return bool(waiting.poll(None if timeout is None else timeout * 1000))

    def _take_end(self) -> None:
        self.returncode = self._next_answer()
        self._answers.close()

    def _next_answer(self) -> int:
        answer = self._answers.recv(_ANSWER.size, socket.MSG_WAITALL)
        assert len(answer) == _ANSWER.size, "the fork server has ended"
        return int(_ANSWER.unpack(answer)[0])


def run_forked(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    directory: Path | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Like `subprocess.run` with captured text."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        process = ForkedProcess(
            module,
            arguments,
            environment,
            stdout.fileno(),
            stderr.fileno(),
            directory=directory,
            preloaded=COMMANDS,
        )
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        stdout.seek(0)
        stderr.seek(0)
        command = [module, *arguments]
        return subprocess.CompletedProcess(command, code, stdout.read(), stderr.read())


# Passes its arguments and streams on to the server, and ends as the process there does. A node runs
# in the process itself, which a shell can kill.
_COMMAND = """#!/bin/sh
case "$1" in serve|cluster) exec {python} -m ottla "$@" ;; esac
exec {python} -SE - "$@" 3<&0 <<'END'
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({path!r})
request = {{"module": "ottla", "arguments": sys.argv[1:], "environment": dict(os.environ)}}
request |= {{"directory": os.getcwd(), "open_files_max": None}}
socket.send_fds(server, [json.dumps(request).encode()], [3, 1, 2])
pid = int.from_bytes(server.recv(4), "big")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
END
"""


def write_command(directory: Path) -> None:
    """An `ottla` program, for a shell with the directory on its PATH."""
    directory.mkdir(exist_ok=True)
    path = _server(COMMANDS).path
    command = directory / "ottla"
    command.write_text(_COMMAND.format(python=sys.executable, path=path))
    command.chmod(0o755)


class _Server:
    def __init__(self, preloaded: tuple[str, ...]) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._directory = tempfile.TemporaryDirectory(prefix="ottla-fork-")
        self.path = f"{self._directory.name}/socket"
        path = f"{REPOSITORY / 'src'}:{REPOSITORY}"
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.fork_server",
                    str(theirs.fileno()),
                    self.path,
                    *preloaded,
                ],
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self._end)
        while not Path(self.path).exists():
            assert self._process.poll() is None, "the fork server has ended"
            time.sleep(0.01)

    def send(self, request: bytes, descriptors: Sequence[int]) -> None:
        with self._lock:
            socket.send_fds(self._requests, [request], descriptors)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait()
        self._directory.cleanup()


@functools.cache
def _server(preloaded: tuple[str, ...]) -> _Server:
    return _Server(preloaded)


# In the server.


class _Children:
    def __init__(self, requests: socket.socket, listener: socket.socket) -> None:
        """`requests` are of the tests, and bring where to tell; each connection is one of its own,
        and is told itself."""
        self._requests = requests
        self._listener = listener
        self._running: dict[int, tuple[int, int]] = {}  # By pidfd: process id, and where to report.

    def serve(self) -> None:
        """Serves until the tests end."""
        while True:
            waiting: list[Any] = [self._requests, self._listener, *self._running]
            ready, _, _ = select.select(waiting, [], [])
            for pidfd in self._running.keys() & set(ready):
                self._bury(pidfd)
            if self._listener in ready:
                connection, _ = self._listener.accept()
                data, streams, _, _ = socket.recv_fds(connection, _REQUEST_BYTES_MAX, 3)
                self._fork(json.loads(data), [*streams, connection.detach()])
            if self._requests in ready:
                data, descriptors, _, _ = socket.recv_fds(self._requests, _REQUEST_BYTES_MAX, 4)
                if not data:
                    return
                self._fork(json.loads(data), descriptors)

    def kill(self) -> None:
        for pid, _ in self._running.values():
            os.kill(pid, signal.SIGKILL)
        for pid, _ in self._running.values():
            os.waitpid(pid, 0)

    def _fork(self, request: dict[str, Any], descriptors: Sequence[int]) -> None:
        *streams, answers = descriptors
        pid = os.fork()
        if not pid:
            self._requests.close()
            self._listener.close()
            for pidfd, (_, other) in self._running.items():
                os.close(pidfd)
                os.close(other)
            self._running.clear()
            os.close(answers)
            _become(request, streams)
        for stream in streams:
            os.close(stream)
        self._running[os.pidfd_open(pid)] = pid, answers
        _tell(answers, pid)

    def _bury(self, pidfd: int) -> None:
        pid, answers = self._running.pop(pidfd)
        _, status = os.waitpid(pid, 0)
        _tell(answers, os.waitstatus_to_exitcode(status))
        os.close(pidfd)
        os.close(answers)


def _tell(descriptor: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # Nobody waits for it.
        os.write(descriptor, _ANSWER.pack(number))


def _become(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    files_max = request["open_files_max"]
    if files_max is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    sys.argv = [request["module"], *request["arguments"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    sys.exit()


def main() -> None:
    number, path, *preloaded = sys.argv[1:]
    requests = socket.socket(fileno=int(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in preloaded:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    children = _Children(requests, listener)
    try:
        children.serve()
    finally:
        children.kill()


if __name__ == "__main__":
    main()

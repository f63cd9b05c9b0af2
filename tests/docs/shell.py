"""One shell for all commands of a document, so that jobs and variables persist."""

import os
import selectors
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_END = "--- end of the command"
_STOP_TIMEOUT_S = 120


class Shell:
    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop background jobs; the shell is their parent."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(b"\nkill $(jobs -p) 2>/dev/null; wait\n")
        stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def run(self, command: str, timeout_s: float) -> tuple[int, str]:
        """The exit code and the output."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(f'{command}\necho "{_END} $?"\n'.encode())
        printed = self._read_until_end(command, timeout_s)
        output, _, code = printed.rpartition(_END)
        return int(code), output

    def _read_until_end(self, command: str, timeout_s: float) -> str:
        stdout = self._process.stdout
        assert stdout is not None
        printed = b""
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not (_END.encode() in printed and printed.endswith(b"\n")):
                assert selector.select(deadline - time.monotonic()), (
                    f"{command}\n{printed.decode()}"
                )
                chunk = os.read(stdout.fileno(), 1 << 16)
                assert chunk, f"the shell has ended\n{printed.decode()}"
                printed += chunk
        return printed.decode()

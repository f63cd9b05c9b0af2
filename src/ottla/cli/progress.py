"""Lines of stdin, with a progress bar on stderr when a person watches and the input is long."""

import os
import stat
import sys
from collections.abc import Iterator
from typing import BinaryIO

BAR_FROM_BYTES = 1 << 20


def read_lines() -> Iterator[bytes]:
    """The lines without their ends, as bytes: a record need not be text."""
    for line in _watched(sys.stdin.buffer):
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _watched(stream: BinaryIO) -> Iterator[bytes]:
    size = _size_of_file(stream)
    if not sys.stderr.isatty() or size < BAR_FROM_BYTES:
        yield from stream
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=size)
        for line in stream:
            yield line
            progress.advance(task, len(line))


def _size_of_file(stream: BinaryIO) -> int:
    """0 for a pipe or a terminal, of which the end is not known."""
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0

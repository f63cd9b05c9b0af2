"""Lines of a file or of stdin; a person who waits for a long one sees a progress bar on stderr."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ottla.cli.errors import CommandError

BAR_FROM_BYTES = 1 << 20


STDIN = Path("-")


@contextmanager
def opened_lines(file: Path | None) -> Iterator[Iterator[bytes]]:
    """The lines without their ends, as bytes: a record need not be text. None is stdin."""
    if file is None or file == STDIN:
        yield _lines(sys.stdin.buffer)
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {file}: {(error.strerror or '').lower()}") from None
    with stream:
        yield _lines(stream)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in _watched(stream):
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

"""Small disks for nodes, which can be filled; they need permission to mount."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

_FILLER = "filler"


class Disk:
    """A filesystem in memory at `path`, inside the `with` block."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes

    def __enter__(self) -> Self:
        """Raises OSError if mounting is not permitted."""
        self._path.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={self._size_bytes}", "tmpfs"]
        try:
            subprocess.run([*command, str(self._path)], check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            raise OSError(f"no disk can be mounted: {error.stderr.decode().strip()}") from error
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", str(self._path)], check=True, capture_output=True)

    @contextmanager
    def full(self) -> Iterator[None]:
        """No free byte is left inside the block."""
        filler = self._path / _FILLER
        try:
            with filler.open("wb", buffering=0) as file:
                while file.write(bytes(max(1, min(1 << 20, shutil.disk_usage(self._path).free)))):
                    pass
        except OSError:
            pass  # The disk is full.
        try:
            yield
        finally:
            filler.unlink()

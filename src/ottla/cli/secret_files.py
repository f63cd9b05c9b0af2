"""Files with secrets that options name."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from ottla.cli.errors import UsageError


def validate_private(option: str, path: Path) -> None:
    """UsageError if others can read the file; what is no file at all is for its reader to say."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        raise UsageError(
            f"{option} {path} has a secret and others can read it; run `chmod o-rwx {path}`"
        )


def replace_private(path: Path, content: bytes) -> None:
    """In one step, so that nobody finds half of it; whoever could read it before can do so."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if path.exists():
                before = path.stat()
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise

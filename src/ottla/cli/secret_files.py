"""Files with secrets that options name."""

import stat
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

"""Why a node cannot start, in words for the person who started it."""

import errno
from collections.abc import Iterable
from typing import Final

from ottla.storage.errors import StorageError

# Path errors that last until someone changes something.
_LASTING: Final = frozenset(
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)


class StartError(Exception):
    """The node cannot start."""


class UnusableDirectory(StartError):
    """Data cannot be stored in the given directory, and retrying will not help."""


def start_error(error: Exception, directories: Iterable[str]) -> StartError:
    """`directories` are the node's."""
    cause = error.cause if isinstance(error, StorageError) else error
    if not isinstance(cause, OSError) or cause.filename is None:
        return StartError(str(error))
    path = str(cause.filename)
    directory = next((known for known in directories if path.startswith(known)), path)
    reason = (cause.strerror or str(cause)).lower()
    text = f"cannot keep data in {directory}: {reason}; choose another directory with --data"
    return UnusableDirectory(text) if cause.errno in _LASTING else StartError(text)

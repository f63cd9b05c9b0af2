"""Lets a worker re-read a zip's directory only when the zip has changed.

Before a task the worker looks for new modules. It has a jar of 6,000 files on its path, and PySpark
as a zip, and Python 3.11 re-reads their directories for that: 50 to 120 ms of processor time for
each task, plan and commit, more than all else in a small micro-batch.

For     every Spark 4, on Python 3.11.
Until   Python 3.12 is the oldest supported: it reads a directory only when needed.
"""

import os
import sys
import zipimport
from typing import Final

_State = tuple[int, int] | None  # Modification time and size; None for a missing file.

_LAZY_SINCE = (3, 12)
_states: Final[dict[tuple[str, str], _State]] = {}  # By archive and folder in it, as last read.
_read_again = zipimport.zipimporter.invalidate_caches


def watch_zips() -> None:
    """Takes effect in this process from now on."""
    if (
        sys.version_info >= _LAZY_SINCE
        or zipimport.zipimporter.invalidate_caches is _read_again_if_changed
    ):
        return
    for importer in sys.path_importer_cache.values():
        if isinstance(importer, zipimport.zipimporter):
            _states[importer.archive, importer.prefix] = _state_of(importer.archive)
    zipimport.zipimporter.invalidate_caches = _read_again_if_changed  # type: ignore[method-assign,assignment]


def _read_again_if_changed(importer: zipimport.zipimporter) -> None:
    folder = importer.archive, importer.prefix
    state = _state_of(importer.archive)
    if folder not in _states or _states[folder] != state:
        _states[folder] = state
        _read_again(importer)


def _state_of(archive: str) -> _State:
    try:
        status = os.stat(archive)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size

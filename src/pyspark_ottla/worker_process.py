"""Makes cheap what Spark's Python workers do around each task, plan and commit.

Both cost more processor time than all else in a small micro-batch, 50 to 120 ms for each call:

zips     Before a task the worker looks for modules that are new. It has a jar of 6,000 files on its
         path, and PySpark as a zip, and Python 3.11 reads their directories again for that. Here
         a zip is read again when it has changed. Later versions read it when it is needed.
garbage  After a task the worker collects garbage among all objects, most of which are modules that
         stay. Here they are set aside when a worker has done its first work.
"""

import functools
import gc
import os
import sys
import zipimport
from typing import Final

_State = tuple[int, int] | None  # Time of change and size; None for a file that is not there.

_LAZY_SINCE = (3, 12)
_states: Final[dict[tuple[str, str], _State]] = {}  # By archive and folder in it, as last read.
_read_again = zipimport.zipimporter.invalidate_caches


def watch_zips() -> None:
    """From now on, in this process."""
    if sys.version_info >= _LAZY_SINCE:
        return
    for importer in sys.path_importer_cache.values():
        if isinstance(importer, zipimport.zipimporter):
            _states[importer.archive, importer.prefix] = _state_of(importer.archive)
    zipimport.zipimporter.invalidate_caches = _read_again_if_changed  # type: ignore[method-assign,assignment]


@functools.cache
def settle() -> None:
    """To be called when all modules are loaded; once in a process it does something."""
    gc.collect()
    gc.freeze()


def _read_again_if_changed(importer: zipimport.zipimporter) -> None:
    place = importer.archive, importer.prefix
    state = _state_of(importer.archive)
    if place not in _states or _states[place] != state:
        _states[place] = state
        _read_again(importer)


def _state_of(archive: str) -> _State:
    try:
        status = os.stat(archive)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size

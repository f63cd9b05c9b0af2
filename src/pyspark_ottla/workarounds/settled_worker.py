"""Reduces what Spark's Python workers do around each task, plan and commit.

After a task the worker garbage-collects all objects, most of which are modules that stay: 50 to 120
ms of processor time. Here they are frozen after a worker's first work, and again when it has loaded
more: one that first reads may write later.

For     every Spark 4.
Until   Spark's worker collects less, or freezes what it has loaded itself.
"""

import gc
import sys

from pyspark_ottla.workarounds.zip_directories import watch_zips

_modules = 0  # How many were loaded at the last freeze.


def settle() -> None:
    """Call after work; acts only if modules were loaded since the last time."""
    global _modules  # noqa: PLW0603 - the garbage collector is the process's, too.
    if len(sys.modules) == _modules:
        return
    watch_zips()
    gc.collect()
    gc.freeze()
    _modules = len(sys.modules)

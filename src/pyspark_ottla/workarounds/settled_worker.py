"""Makes cheap what Spark's Python workers do around each task, plan and commit.

After a task the worker collects garbage among all objects, most of which are modules that stay:
50 to 120 ms of processor time. Here they are set aside when a worker has done its first work, and
again when it has loaded more: one that reads at first may write later.

For     every Spark 4.
Until   Spark's worker collects less, or sets aside what it has loaded by itself.
"""

import gc
import sys

from pyspark_ottla.workarounds.zip_directories import watch_zips

_modules = 0  # How many were loaded when objects were last set aside.


def settle() -> None:
    """To be called after work; it does something if modules were loaded since it last did."""
    global _modules  # noqa: PLW0603 - the garbage collector is the process's, too.
    if len(sys.modules) == _modules:
        return
    watch_zips()
    gc.collect()
    gc.freeze()
    _modules = len(sys.modules)

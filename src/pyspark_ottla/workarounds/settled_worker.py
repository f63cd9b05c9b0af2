"""Makes cheap what Spark's Python workers do around each task, plan and commit.

After a task the worker collects garbage among all objects, most of which are modules that stay:
50 to 120 ms of processor time. Here they are set aside when a worker has done its first work.

For     every Spark 4.
Until   Spark's worker collects less, or sets aside what it has loaded by itself.
"""

import functools
import gc

from pyspark_ottla.workarounds.zip_directories import watch_zips


@functools.cache
def settle() -> None:
    """To be called when all modules are loaded; once in a process it does something."""
    watch_zips()
    gc.collect()
    gc.freeze()

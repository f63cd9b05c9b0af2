"""Settings of a Spark session in which streams over topics are fast, on one machine or many.

`make bench-spark` measures with them.
"""

import os

_STREAMING = "org.apache.spark.sql.execution.streaming"


def session_settings(cores: int | None = None) -> dict[str, str]:
    """To build a session with; `cores` are those of the whole cluster, or of this machine.

    They belong to the session's beginning: some of them are not heeded by one that runs.
    """
    return {
        # Local TCP sockets to Python workers stall for 40 ms in each micro-batch.
        "spark.python.unix.domain.socket.enabled": "true",
        # Off by default; without it every filter reads the whole topic.
        "spark.sql.python.filterPushdown.enabled": "true",
        # Each partition of a shuffle costs a task, and each with state some files, per micro-batch.
        "spark.sql.shuffle.partitions": str(cores or os.cpu_count() or 1),
        # The default one starts processes to set permissions, for each of the checkpoint's files.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # How long a stream sleeps that has found nothing new.
        "spark.sql.streaming.pollingDelay": "1ms",
        # State that does not fit into the heap; only what changed is written to the checkpoint.
        "spark.sql.streaming.stateStore.providerClass": (
            f"{_STREAMING}.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }

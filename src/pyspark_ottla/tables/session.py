"""The Spark that a sync runs on: in this process, on a cluster, or behind Spark Connect."""

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from pyspark_ottla.pipeline import session
from pyspark_ottla.tables.sync_plan import SyncPlan


def open_session(plan: SyncPlan, master: str, remote: str | None) -> SparkSession:
    """Raises JavaNotFound if Spark cannot run here."""
    log = Path(tempfile.gettempdir(), f"ottla-table-{plan.sink_id}.log")
    return session.open_session(
        plan.topic, master=master, remote=remote or "", settings={}, log=log
    )

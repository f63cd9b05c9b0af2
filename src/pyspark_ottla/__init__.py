"""The Spark data source `ottla`: topics of any Kafka cluster as tables and streams.

Spark imports modules named `pyspark_*` by itself and registers their `DefaultSource`.
"""

from pyspark_ottla.session import spark_session
from pyspark_ottla.source import DefaultSource
from pyspark_ottla.worker_process import watch_zips

watch_zips()

__all__ = ["DefaultSource", "spark_session"]

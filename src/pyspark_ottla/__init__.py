"""The Spark data source `ottla`: topics of any Kafka cluster as tables and streams.

Spark imports modules named `pyspark_*` on its own and registers their `DefaultSource`.
"""

from pyspark_ottla.notebook import ottla_progress
from pyspark_ottla.session import prepare, spark_session
from pyspark_ottla.source import DefaultSource

__all__ = ["DefaultSource", "ottla_progress", "prepare", "spark_session"]

"""The Spark data source `ottla_table`: Delta and Iceberg tables without a jar.

Spark registers one data source of each module named `pyspark_*`; all of it is in `pyspark_ottla`.
"""

from pyspark_ottla.tables.source import DefaultSource

__all__ = ["DefaultSource"]

"""A `pushFilters` that PySpark takes for its base class's.

PySpark refuses a reader with its own `pushFilters` while the switch for filters is off. It is off
by default, and a read without it must not fail. PySpark compares the function behind the method, so
this one has the base class's; PySpark calls the method only with the switch on.

For     Spark 4.1 and later; 4.0 pushes no filters.
Until   the switch is on by default, or PySpark ignores the method while it is off.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader

from pyspark_ottla.spark_api import HAS_FILTERS

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class PushFilters:
    if HAS_FILTERS:
        __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, push: Callable[[list["Filter"]], list["Filter"]]) -> None:
        self._push = push

    def __call__(self, filters: list["Filter"]) -> list["Filter"]:
        return self._push(filters)

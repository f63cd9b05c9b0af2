"""What Spark calls for the name `ottla_table`.

    frame.writeStream.format("ottla_table").option("sinkId", "orders").start("delta:/lake/orders")
    spark.read.format("ottla_table").load("delta:/lake/orders")

It is `TableWriter` for callers that need a format, such as the sinks of Declarative Pipelines.
Spark imports this in every Python worker that looks for any data source, so nothing heavy is
imported before its first use.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_ottla.tables.source_options import TableOptions
    from pyspark_ottla.tables.table import Table


class DefaultSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_table"

    def schema(self) -> StructType:
        found = self._table().schema()
        if found is None:
            from pyspark_ottla.tables.table import TableNotFound

            raise TableNotFound(f"there is no table {self._options().table}")
        return found

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_ottla.tables.reader import TableReader

        return TableReader(self._table(), self._options().version, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_ottla.tables.format_writers import BatchTableWriter
        from pyspark_ottla.tables.source_options import validate_batch_write

        options = self._options()
        validate_batch_write(options, overwrite=overwrite)
        return BatchTableWriter(options, schema)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamWriter:
        from pyspark_ottla.tables.format_writers import StreamTableWriter

        return StreamTableWriter(self._options(), schema)

    def _options(self) -> "TableOptions":
        from pyspark_ottla.tables.source_options import parse_table_options

        return parse_table_options(self.options)

    def _table(self) -> "Table":
        from pyspark_ottla.tables.table import open_table

        return open_table(self._options().table)

"""What Spark calls for the name `ottla`.

Spark imports this in every Python worker that looks for any data source, so the parts that need
numpy and Arrow are imported on first use.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_ottla.workarounds.settled_worker import settle

if TYPE_CHECKING:
    from pyspark_ottla.stream_reader import OttlaStreamReader


class DefaultSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType | str:
        from pyspark_ottla.columns import default_schema
        from pyspark_ottla.source_options import parse_source_options

        columns = default_schema(parse_source_options(self.options))
        settle()  # Spark creates a source per read, in a process that does nothing else.
        return columns

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_ottla.batch_reader import OttlaReader
        from pyspark_ottla.source_options import Use, parse_source_options

        return OttlaReader(parse_source_options(self.options, Use.BATCH), schema)

    def streamReader(self, schema: StructType) -> "OttlaStreamReader":  # noqa: N802
        from pyspark_ottla.source_options import Use, parse_source_options
        from pyspark_ottla.stream_reader import OttlaStreamReader

        return OttlaStreamReader(parse_source_options(self.options, Use.STREAM), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_ottla.sink.options import parse_sink_options, validate_mode
        from pyspark_ottla.sink.writers import BatchWriter

        validate_mode(overwrite=overwrite)
        return BatchWriter(parse_sink_options(self.options, is_stream=False), schema)

    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamWriter:
        from pyspark_ottla.sink.options import parse_sink_options
        from pyspark_ottla.sink.writers import StreamWriter

        settle()  # Spark creates a writer for each micro-batch.
        return StreamWriter(parse_sink_options(self.options, is_stream=True), schema)

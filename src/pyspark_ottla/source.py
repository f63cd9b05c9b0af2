"""What Spark calls by the name `ottla`.

Spark imports this in every Python worker that looks for any data source, so the parts that need
numpy and Arrow are imported when they are asked for.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark_ottla.stream_reader import OttlaStreamReader


class DefaultSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType | str:
        from pyspark_ottla.columns import default_schema
        from pyspark_ottla.source_options import parse_source_options

        return default_schema(parse_source_options(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_ottla.batch_reader import OttlaReader
        from pyspark_ottla.source_options import Use, parse_source_options

        return OttlaReader(parse_source_options(self.options, Use.BATCH), schema)

    def streamReader(self, schema: StructType) -> "OttlaStreamReader":  # noqa: N802
        from pyspark_ottla.source_options import Use, parse_source_options
        from pyspark_ottla.stream_reader import OttlaStreamReader

        return OttlaStreamReader(parse_source_options(self.options, Use.STREAM), schema)

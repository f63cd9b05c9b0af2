"""A table read by Spark: the driver lists the files, each task reads one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_ottla.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 32_768


@dataclass(frozen=True)
class FileOfTable(InputPartition):
    path: str


class TableReader(DataSourceReader):
    def __init__(self, table: Table, version: int | None, schema: StructType) -> None:
        self._table = table
        self._version = version
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [FileOfTable(path) for path in self._table.files(self._version)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        if not isinstance(partition, FileOfTable):
            return  # Spark's own, when there is nothing to read.
        import pyarrow.parquet as pq

        from pyspark_ottla.arrow_schemas import to_arrow_schema
        from pyspark_ottla.tables.data_files import fit
        from pyspark_ottla.tables.locations import open_location

        schema = to_arrow_schema(self._schema)
        filesystem, path = open_location(partition.path)
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            known = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(_ROWS, columns=known):
                yield fit(batch, schema)

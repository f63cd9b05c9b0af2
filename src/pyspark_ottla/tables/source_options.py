"""The options of the format `ottla_table`, checked and typed."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_ottla.options import OptionError, OptionValues
from pyspark_ottla.tables.address import parse_address
from pyspark_ottla.tables.batch import validate_sink_id

NAMES = (
    "path",
    "version",
    "sinkId",
    "batchId",
    "key",
    "order",
    "deleted",
    "addColumns",
    # Spark's own, which it passes on.
    "checkpointLocation",
    "queryName",
)


@dataclass(frozen=True)
class TableOptions:
    table: str
    version: int | None  # The version to read; None: the newest.
    sink_id: str | None
    batch_id: int | None
    key: tuple[str, ...]
    order: str | None
    deleted: str
    add_columns: bool


def parse_table_options(options: Mapping[str, str]) -> TableOptions:
    values = OptionValues(options, NAMES)
    table = values.text("path")
    if table is None:
        raise OptionError("option path is missing: the address of the table, as delta:/lake/orders")
    if str(parse_address(table)) != table:
        raise OptionError(f"option path: {table} must be a whole path: tasks run elsewhere")
    sink_id = values.text("sinkId")
    if sink_id is not None:
        validate_sink_id(sink_id)
    key = (values.text("key") or "").split(",")
    return TableOptions(
        table=table,
        version=values.number("version"),
        sink_id=sink_id,
        batch_id=values.number("batchId"),
        key=tuple(name.strip() for name in key if name.strip()),
        order=values.text("order"),
        deleted=values.text("deleted") or "_deleted",
        add_columns=values.flag("addColumns", True),
    )


def validate_batch_write(options: TableOptions, *, overwrite: bool) -> None:
    if overwrite:
        raise OptionError("the mode is append: a write adds rows, or merges them by their key")
    if options.batch_id is None:
        raise OptionError(
            "option batchId is missing: a number that is the same when the write is repeated, and"
            " higher for the next one; in foreachBatch it is the number of the batch"
        )

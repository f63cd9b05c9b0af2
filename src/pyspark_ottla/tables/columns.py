"""Whether rows fit into a table, and which columns it needs first."""

from collections.abc import Sequence

from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StructField,
    StructType,
)

from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.table import Table

_WIDENING: Sequence[Sequence[type[DataType]]] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)


def prepare_table(
    table: Table, rows: StructType, *, add_columns: bool, partition_by: Sequence[str] = ()
) -> StructType:
    """Add the columns that the rows have and the table lacks; returns its new schema.

    A missing table is created here only if files need its location; otherwise
    `committing.create_table` does it with the first commit, so that a failed batch leaves none.
    Raises TableError for rows that do not fit.
    """
    validate_types(rows)
    before = table.schema()
    if before is None:
        if not table.comes_before_files:
            return nullable(rows)
        table.create(nullable(rows), partition_by)
    else:
        new = new_columns(before, rows)
        if new and not add_columns:
            raise TableError(
                f"the table has no column {', '.join(field.name for field in new)};"
                f" it has {', '.join(before.fieldNames())}"
            )
        table.add_columns(new)
    after = table.schema()
    assert after is not None, "the table was just made"
    return after


def new_columns(table: StructType, rows: StructType) -> list[StructField]:
    """Raises TableError for a column with another type in the table."""
    new = []
    for field in nullable(rows):
        if field.name not in table.fieldNames():
            new.append(field)
        elif not fits(field.dataType, table[field.name].dataType):
            raise TableError(
                f"column {field.name} is {table[field.name].dataType.simpleString()} in the table"
                f" and {field.dataType.simpleString()} in the rows"
            )
    return new


def fits(given: DataType, wanted: DataType) -> bool:
    if given.simpleString() == wanted.simpleString():
        return True
    return any(
        type(given) in kinds
        and type(wanted) in kinds
        and kinds.index(type(given)) < kinds.index(type(wanted))
        for kinds in _WIDENING
    )


def nullable(schema: StructType) -> StructType:
    """Nullable columns, so that later batches may lack them."""
    return StructType([StructField(field.name, field.dataType) for field in schema])


def validate_types(schema: StructType) -> None:
    for field in schema:
        if isinstance(field.dataType, NullType):
            raise TableError(f"column {field.name} has no type: give it one with a cast")
    names = [name.lower() for name in schema.fieldNames()]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise TableError(f"there is more than one column {', '.join(sorted(twice))}")

import pytest

from pyspark_ottla.options import OptionError
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.source_options import parse_table_options, validate_batch_write


def test_options_of_a_write() -> None:
    options = parse_table_options(
        {"path": "delta:/lake/orders", "sinkid": "s", "batchid": "3", "key": "a, b", "order": "c"}
    )
    assert (options.table, options.sink_id, options.batch_id) == ("delta:/lake/orders", "s", 3)
    assert (options.key, options.order, options.deleted) == (("a", "b"), "c", "_deleted")
    validate_batch_write(options, overwrite=False)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "option path is missing"),
        ({"path": "delta:lake"}, "must be a whole path"),
        ({"path": "lake"}, "not the address of a table"),
        ({"path": "delta:/lake", "sinkId": "_s"}, "begin with a letter"),
        ({"path": "delta:/lake", "sinkIdd": "s"}, "did you mean sinkId"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], reason: str) -> None:
    with pytest.raises((OptionError, TableError), match=reason):
        parse_table_options(options)


def test_a_batch_has_a_number_and_adds_rows() -> None:
    options = parse_table_options({"path": "iceberg:lake.sales.orders", "sinkId": "s"})
    with pytest.raises(OptionError, match="batchId is missing"):
        validate_batch_write(options, overwrite=False)
    with pytest.raises(OptionError, match="the mode is append"):
        validate_batch_write(options, overwrite=True)

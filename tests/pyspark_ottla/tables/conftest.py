from pathlib import Path

import pytest
from tests.pyspark_ottla.tables.written import SCHEMA

from pyspark_ottla.tables.table import Table, open_table


@pytest.fixture(params=["delta", "iceberg"])
def format_(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(format_: str, tmp_path: Path) -> str:
    return f"{format_}:{tmp_path}/lake/orders"


@pytest.fixture
def table(address: str) -> Table:
    """Without rows."""
    table = open_table(address)
    table.create(SCHEMA)
    return table

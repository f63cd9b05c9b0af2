from pathlib import Path

from sqlalchemy import text

from pyspark_ottla.tables.iceberg import _catalog_in


def test_a_catalog_that_another_process_writes_to_is_waited_for(tmp_path: Path) -> None:
    with _catalog_in(str(tmp_path)).engine.connect() as connection:  # type: ignore[attr-defined]
        assert connection.execute(text("pragma busy_timeout")).scalar_one() == 60_000

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_ottla.tables import data_files
from pyspark_ottla.tables.data_files import TaskFiles

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("text", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.int32())),
    ]
)


def write(directory: Path, *batches: pa.RecordBatch) -> list[data_files.DataFile]:
    return TaskFiles(str(directory), "sink/0", SCHEMA, "run").write(batches, 2, 5)


def test_columns_are_taken_by_name(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"text": ["a", "b"], "other": [1, 2], "number": pa.array([7, 8], pa.int32())}
    )
    (file,) = write(tmp_path, batch)
    assert file.path == "sink/0/run-2-5-0.parquet"
    assert (file.rows, file.size) == (2, (tmp_path / file.path).stat().st_size)
    read = pq.read_table(tmp_path / file.path, partitioning=None)
    assert read.schema == SCHEMA
    assert read.to_pylist()[1] == {"number": 8, "text": "b", "time": None, "list": None}


def test_a_number_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        write(tmp_path, pa.RecordBatch.from_pydict({"number": [1.5]}))


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, pa.RecordBatch.from_pylist([], SCHEMA)) == []
    assert list(tmp_path.iterdir()) == []


def test_files_end_when_they_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "FILE_BYTES", 1)
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    batch = pa.RecordBatch.from_pydict({"number": [1, 2]})
    files = write(tmp_path, batch, batch)
    assert [file.path for file in files] == ["sink/0/run-2-5-0.parquet", "sink/0/run-2-5-1.parquet"]
    assert [file.rows for file in files] == [2, 2]


def test_statistics_bound_numbers_and_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP_BYTES", 1)
    early = dt.datetime(2026, 1, 1, 0, 0, 0, 1_500, dt.UTC)
    rows = [
        {"number": 5, "text": "x", "time": early, "list": [1]},
        {"number": -2, "text": "y", "time": early + dt.timedelta(hours=1), "list": None},
    ]
    batches = [pa.RecordBatch.from_pylist([line], SCHEMA) for line in rows]
    (file,) = write(tmp_path, *batches)
    found = json.loads(file.statistics)
    assert found["numRecords"] == 2
    assert found["minValues"] == {"number": -2, "time": "2026-01-01T00:00:00.001Z"}
    assert found["maxValues"] == {"number": 5, "time": "2026-01-01T01:00:00.002Z"}

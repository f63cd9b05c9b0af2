import json
from pathlib import Path

import pytest
from tests.client.topics import create_topic
from tests.pyspark_ottla.rows import write
from tests.pyspark_ottla.tables.written import write_files

from ottla.client.wire.cluster import Cluster
from ottla.protocol.topics import TopicPartition
from pyspark_ottla.source_options import ValueFormat
from pyspark_ottla.tables.address import TableError
from pyspark_ottla.tables.batch import Batch
from pyspark_ottla.tables.sync_plan import SyncPlan, parse_schema
from pyspark_ottla.tables.table import open_table
from pyspark_ottla.tables.topic_rows import BadRows, TopicRows

ROWS = TopicRows(ValueFormat.JSON, None, False, False, BadRows.FAIL, False)


@pytest.fixture
def plan(cluster: Cluster, bootstrap: str, tmp_path: Path) -> SyncPlan:
    topic = create_topic(cluster, partitions=2)
    return SyncPlan(topic, f"delta:{tmp_path}/orders", bootstrap, ROWS, "sync")


def test_the_schema_comes_from_the_first_records_of_all_partitions(
    plan: SyncPlan, cluster: Cluster
) -> None:
    write(cluster, TopicPartition(plan.topic, 0), b'{"item": "lamp"}', None)
    write(cluster, TopicPartition(plan.topic, 1), b'{"price": 3}', b"nonsense")
    assert plan.prepare_table().simpleString() == (
        "struct<item:string,price:bigint,_topic:string,_partition:int,_offset:bigint,"
        "_timestamp:timestamp,_key:binary>"
    )
    assert open_table(plan.table).schema() is None  # The first commit makes it.


def test_a_new_checkpoint_begins_where_the_table_ends(plan: SyncPlan, cluster: Cluster) -> None:
    write(cluster, TopicPartition(plan.topic, 0), b'{"item": "lamp"}')
    columns = plan.prepare_table()
    assert plan.stream_options()["startingOffsets"] == "earliest"
    table = open_table(plan.table)
    table.create(columns)
    batch = Batch("sync", 0, ends={plan.topic: {"0": 7}})
    table.claim("sync").append(batch, write_files(table, batch, {"item": "lamp"}))
    starts = json.loads(plan.stream_options()["startingOffsets"])
    assert starts == {plan.topic: {"0": 7, "1": -2}}


def test_a_topic_that_is_not_there(bootstrap: str, tmp_path: Path) -> None:
    plan = SyncPlan("not-there", f"delta:{tmp_path}/orders", bootstrap, ROWS, "sync")
    with pytest.raises(TableError, match="there is no topic not-there"):
        plan.prepare_table()


def test_a_sink_id_is_a_name_of_files() -> None:
    with pytest.raises(TableError, match="sink id 'a/b' must be"):
        SyncPlan("topic", "delta:/lake", "localhost:1", ROWS, "a/b")


def test_a_schema_can_be_json_in_a_file(tmp_path: Path) -> None:
    field = {"name": "item", "type": "string", "nullable": True, "metadata": {}}
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({"type": "struct", "fields": [field]}))
    assert parse_schema(str(file)).simpleString() == "struct<item:string>"
    with pytest.raises(TableError, match="is not a schema"):
        parse_schema('{"type": "struct"}')

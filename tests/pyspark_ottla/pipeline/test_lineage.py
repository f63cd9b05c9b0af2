import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType
from tests.client.topics import create_topic
from tests.log_messages import messages_of
from tests.pyspark_ottla.sink.written import values

from ottla.client.wire.cluster import Cluster
from pyspark_ottla.pipeline.file import load_pipeline
from pyspark_ottla.pipeline.frames import Frames
from pyspark_ottla.pipeline.lineage import Lineage
from pyspark_ottla.pipeline.lineage_events import send_event
from pyspark_ottla.pipeline.model import Pipeline
from pyspark_ottla.pipeline.problems import PipelineError
from pyspark_ottla.pipeline.progress import Progress
from pyspark_ottla.pipeline.shape import Shape

TEXT = """\
name: shop
bootstrap-servers: one:9092,two:9092
lineage: events/lineage.jsonl
sources:
  orders: {topic: [orders, returns], format: json, schema: id int}
sinks:
  copy: {from: orders, topic: copied}
  table: {from: orders, delta: lake/orders}
  bucket: {from: orders, iceberg: shop.main.orders}
  shown: {from: orders, console: true}
"""
LINES = StructType([StructField("item", StringType())])
ROWS = StructType(
    [
        StructField("id", IntegerType()),
        StructField("lines", ArrayType(LINES)),
        StructField("_offset", IntegerType()),
    ]
)


class Frame(NamedTuple):
    schema: StructType


Events = list[dict[str, Any]]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    path = tmp_path / "shop.yaml"
    path.write_text(TEXT)
    return load_pipeline(path)


@pytest.fixture
def kept() -> Events:
    return []


@pytest.fixture
def lineage(pipeline: Pipeline, kept: Events) -> Lineage:
    frames: Any = Frames({"orders": Frame(ROWS)}, {})  # type: ignore[dict-item]
    shape = Shape([["orders", "orders", "returns"]], [], {}, {}, {})
    shapes = dict.fromkeys(pipeline.sinks, shape)
    return Lineage(kept.append, pipeline, frames, shapes, spark_version="4.3.0", is_stream=True)


def progress(*names: str) -> Progress:
    made = Progress("shop")
    for name in names:
        made.add(name, "")
    return made


def test_a_run_tells_its_beginning_and_its_end(lineage: Lineage, kept: Events) -> None:
    lineage.start("copy")
    lineage.start("dead-letter-orders")  # No sink.
    done = progress("copy")
    done.queries["copy"].rows_out = 7
    lineage.end(done)
    start, complete = kept
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("ottla", "shop.copy")
    names = [(each["namespace"], each["name"]) for each in start["inputs"]]
    assert names == [("kafka://one:9092", "orders"), ("kafka://one:9092", "returns")]
    (output,) = complete["outputs"]
    assert (output["namespace"], output["name"]) == ("kafka://one:9092", "copied")
    assert output["facets"]["schema"]["fields"] == [
        {"name": "id", "type": "int"},
        {
            "name": "lines",
            "type": "array<struct<item:string>>",
            "fields": [{"name": "item", "type": "string"}],
        },
    ]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert "outputFacets" not in start["outputs"][0]
    lineage.end(done)
    assert len(kept) == 2


def test_one_that_failed_and_one_that_was_stopped_for_it(lineage: Lineage, kept: Events) -> None:
    lineage.start("copy")
    lineage.start("table")
    failed = progress("copy", "table")
    failed.fail("table", "the disk is full")
    lineage.end(failed)
    ends = {event["job"]["name"]: event for event in kept[2:]}
    assert ends["shop.copy"]["eventType"] == "ABORT"
    assert ends["shop.table"]["eventType"] == "FAIL"
    assert ends["shop.table"]["run"]["facets"]["errorMessage"]["message"] == "the disk is full"


def test_tables_and_the_console(lineage: Lineage, kept: Events, pipeline: Pipeline) -> None:
    for name in ("table", "bucket", "shown"):
        lineage.start(name)
    table, bucket, shown = (event["outputs"] for event in kept)
    assert (table[0]["namespace"], table[0]["name"]) == (
        "file",
        str(pipeline.path.parent / "lake" / "orders"),
    )
    assert (bucket[0]["namespace"], bucket[0]["name"]) == ("iceberg://shop", "main.orders")
    assert shown == []


EVENT = {"eventType": "START", "job": {"name": "shop.copy"}}


def test_a_file_gets_a_line_for_each(pipeline: Pipeline, tmp_path: Path) -> None:
    assert pipeline.lineage == str(tmp_path / "events" / "lineage.jsonl")
    send_event(EVENT, pipeline.lineage, "")
    send_event(EVENT, pipeline.lineage, "")
    lines = Path(pipeline.lineage).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [EVENT, EVENT]


def test_a_topic_gets_a_record_for_each(bootstrap: str) -> None:
    with Cluster(bootstrap) as cluster:
        topic = create_topic(cluster, 1)
        send_event(EVENT, f"topic:{topic}", bootstrap)
        assert [json.loads(value) for value in values(cluster, topic)] == [EVENT]


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            received.append((self.path, self.headers["Authorization"], self.rfile.read(length)))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nobody looks."""

    received: list[Any] = []
    made = HTTPServer(("127.0.0.1", 0), Handler)
    made.received = received  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def test_http_gets_a_post_for_each(server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    address = f"http://127.0.0.1:{server.server_address[1]}"
    send_event(EVENT, address, "")
    send_event(EVENT, f"{address}/here", "")
    (first, second) = server.received  # type: ignore[attr-defined]
    assert first == ("/api/v1/lineage", "Bearer secret", json.dumps(EVENT).encode())
    assert second[0] == "/here"


def test_what_does_not_arrive_is_said_and_nothing_is_raised(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    send_event(EVENT, "http://127.0.0.1:1", "")
    (tmp_path / "file").touch()
    send_event(EVENT, str(tmp_path / "file" / "below"), "")
    assert len(messages_of("pyspark_ottla.pipeline.lineage_events", caplog)) == 2
    assert "START of lineage did not arrive at http://127.0.0.1:1" in caplog.text


def test_a_topic_must_have_a_name(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(TEXT.replace("events/lineage.jsonl", '"topic:a b"'))
    with pytest.raises(PipelineError, match="'a b' is not a name of a topic"):
        load_pipeline(path)
